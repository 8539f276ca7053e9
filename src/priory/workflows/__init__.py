"""The commands of ``priory`` as Python functions: from files to models and from models to answers.

    train       learn a model from files of any size; returns the model, its scores, its evidence and the audit
    predict     label the rows of files
    explain     show the evidence behind the predictions for rows of a file
    explain_values   show the evidence behind the prediction for texts, or for cells by column name
    evaluate    compare a model's predictions with the labels of files
    report      write an HTML report about a model on the rows of files
    ask         choose rows of files to label next
    select      keep the rows of files that a model finds most probable of a class
    learn_contrast   learn what distinguishes wanted texts from the texts of files
    audit       look for leakage in files
    drift       compare the rows of files with newer rows
    learn       learn the rows of files into a model file
    forget      unlearn the rows of files, exactly
    merge       add the statistics of several models
    train_table, forget_table   the same with a table of a database
    rank_columns   rank columns by how much worse a model predicts without them
    find_counterfactuals   find changes of a single cell that change the prediction for a row
    inspect     list what a model file contains and would reveal
    issue_receipt   state what a model file has learned in a signed receipt
    verify      verify a receipt of forgetting
    export      make SQL, JavaScript, a page or an ONNX graph that answers as a model file does
    make_card   describe a model file on a page
    release     write a differentially private copy of a model file

Files are read a block at a time, so they may be larger than memory. Every function takes paths with the keyword
arguments of `FileTask`, or a `FileTask`: the files, the `ReadOptions` for parsing them, the `ColumnOptions` for their
columns, the key of signed models, and `Callbacks` for progress and notes. Nothing is printed.
"""

from priory.core.lazy_imports import attach_stub

__getattr__, __dir__ = attach_stub(__name__)
