// Brings a page of the course to life: the figures in their places, and the checks of the exercises.

for (const place of document.querySelectorAll("[data-figure]")) {
  const { mount } = await import(`./figure-${place.dataset.figure}.js`);
  mount(place);
}

const exercises = [...document.querySelectorAll("[data-exercise]")];
if (exercises.length) {
  const { mountExercise } = await import("./exercises.js");
  const { default: data } = await import("./exercises-data.js");
  for (const place of exercises) mountExercise(place, data[place.dataset.exercise]);
}
