"""Routes of the web pages, with authentication and protection against cross-site requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from priory.errors import PrioryError, ServiceError
from priory.service import handlers
from priory.service.messages import describe_problem, find_status
from priory.service.pages import model_pages, page_call, teaching_pages
from priory.service.pages.page_call import FormFields, PageCall, render_view
from priory.service.pages.page_state import PageState
from priory.service.tokens import Identity, Scope

if TYPE_CHECKING:
    from priory.service.server import Service

PageHandler = Callable[[PageCall], Awaitable[Response]]
TOKEN_COOKIE = "priory_token"
COOKIE_SECONDS = 30 * 24 * 3600  # 30 days
MAX_SIGN_IN_BYTES = 4096
MODEL_PAGE = "/models/{name}"


@dataclass(frozen=True)
class PageRoute:
    """One route of the web pages: method, path and required scope."""

    method: str
    path: str
    handler: PageHandler
    scope: Scope = "read"


PAGE_ROUTES = (
    PageRoute("GET", "/", model_pages.show_models),
    PageRoute("POST", "/upload", model_pages.start_training, "learn"),
    PageRoute("GET", "/upload/{job}", model_pages.show_training, "learn"),
    PageRoute("GET", MODEL_PAGE, model_pages.show_model),
    PageRoute("GET", f"{MODEL_PAGE}/scores", model_pages.show_scores),
    PageRoute("GET", f"{MODEL_PAGE}/privacy", model_pages.show_privacy),
    PageRoute("GET", f"{MODEL_PAGE}/file", handlers.download_model, "admin"),
    PageRoute("POST", f"{MODEL_PAGE}/delete", model_pages.delete_model_page, "admin"),
    PageRoute("GET", f"{MODEL_PAGE}/try", teaching_pages.show_try),
    PageRoute("POST", f"{MODEL_PAGE}/try", teaching_pages.answer_try),
    PageRoute("POST", f"{MODEL_PAGE}/try/learn", teaching_pages.learn_try, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/try/undo", teaching_pages.undo_try, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/queue", teaching_pages.show_queue, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/queue/row", teaching_pages.show_queue_row, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/queue/add", teaching_pages.add_queue_rows, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/queue/label", teaching_pages.label_queue_row, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/queue/learn", teaching_pages.learn_queue, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/queue/undo", teaching_pages.undo_queue_row, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/rows", teaching_pages.show_rows, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/rows/found", teaching_pages.search_rows, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/rows/forget", teaching_pages.forget_rows, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/rows/relabel", teaching_pages.relabel_row, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/audit", model_pages.show_audit, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/audit", model_pages.run_audit, "learn"),
    PageRoute("GET", f"{MODEL_PAGE}/compare", model_pages.show_compare),
    PageRoute("POST", f"{MODEL_PAGE}/compare", model_pages.compare),
    PageRoute("GET", f"{MODEL_PAGE}/traffic", model_pages.show_traffic),
    PageRoute("GET", f"{MODEL_PAGE}/history", model_pages.show_history),
    PageRoute("POST", f"{MODEL_PAGE}/history/undo", model_pages.undo_from_history, "learn"),
    PageRoute("POST", f"{MODEL_PAGE}/history/forget", model_pages.forget_from_history, "learn"),
    PageRoute("GET", "/play", teaching_pages.show_play),
)


def make_page_routes(service: Service) -> list[Route]:
    """Return all routes of the web pages, for ``make_application``."""
    state = PageState()
    routes = [
        Route(route.path, _make_page_endpoint(service, state, route), methods=[route.method]) for route in PAGE_ROUTES
    ]
    sign_in = _make_sign_in_endpoint(service)
    return [
        *routes,
        Route("/sign-in", sign_in, methods=["GET", "POST"]),
        Route("/sign-out", _sign_out, methods=["POST"]),
        Route("/static/{file}", _serve_static_file, methods=["GET"]),
    ]


def _make_page_endpoint(
    service: Service, state: PageState, route: PageRoute
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        request.scope["priory.route"] = route.path
        identity: Identity | None = None
        try:
            _check_is_own_request(request)
            identity = service.settings.tokens.identify(f"Bearer {request.cookies.get(TOKEN_COOKIE, '')}")
            service.admit(request, identity, route.scope)
            async with service.occupy_slot(request):
                return await route.handler(PageCall(service, request, identity, state))
        except (PrioryError, HTTPException) as error:
            return _answer_failure(service, request, identity, error)

    return endpoint


def _check_is_own_request(request: Request) -> None:
    """Raise 403 for changes that do not come from our own pages: forms of other sites cannot set this header."""
    if request.method == "POST" and request.headers.get("hx-request") != "true":
        raise ServiceError(403, "requests from pages of other sites are refused")


def _answer_failure(service: Service, request: Request, identity: Identity | None, error: Exception) -> Response:
    """Show an error in the page, or redirect an unknown visitor to the sign-in page."""
    status = find_status(error)
    is_part = request.headers.get("hx-request") == "true"
    if status == 401:
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"}) if is_part else _redirect("/sign-in")
    template = "error_part.html" if is_part else "error.html"
    return render_view(service, request, identity, template, {"message": describe_problem(error)}, status)


def _redirect(path: str) -> Response:
    return RedirectResponse(path, 303)


# -- tokens ----------------------------------------------------------------------------------------------------------


def _make_sign_in_endpoint(service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        request.scope["priory.route"] = "/sign-in"
        if not service.settings.tokens.is_required:
            return _redirect("/")
        if request.method == "GET":
            return render_view(service, request, None, "sign_in.html", {})
        try:
            _check_is_own_request(request)
            token = (await _read_small_form(request)).get("token").strip()
            service.settings.tokens.identify(f"Bearer {token}")
        except ServiceError as error:
            message = "this token is not known" if error.status == 401 else str(error)
            return render_view(service, request, None, "error_part.html", {"message": message}, error.status)
        # htmx follows this header
        response = Response(status_code=204, headers={"HX-Redirect": "/"})
        response.set_cookie(
            TOKEN_COOKIE,
            token,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=service.settings.is_encrypted,
        )
        return response

    return endpoint


async def _read_small_form(request: Request) -> FormFields:
    """Read the form of a visitor who is not signed in yet, with a small size limit."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_SIGN_IN_BYTES:
            raise ServiceError(413, "this is too long for a token")
    return FormFields(body)


async def _sign_out(request: Request) -> Response:
    _check_is_own_request(request)
    response = Response(status_code=204, headers={"HX-Redirect": "/sign-in"})
    response.delete_cookie(TOKEN_COOKIE, httponly=True, samesite="strict")
    return response


async def _serve_static_file(request: Request) -> Response:
    name = str(request.path_params["file"])
    if name not in page_call.STATIC_TYPES:
        raise HTTPException(404)
    headers = {"Cache-Control": f"max-age={page_call.STATIC_SECONDS}"}
    return Response(page_call.read_static_file(name), media_type=page_call.STATIC_TYPES[name], headers=headers)
