"""The Sphinx extension of the book: launch buttons, vendored browser code, live forms.

Everything that a page needs is copied into the built book, so that it makes no request to any
other host. Third-party code comes from `node_modules` (see package.json) at build time.
"""

from sphinx.application import Sphinx

from tfbook.site import assets, claims, figure_list, mend, pages, reference, repository, terms


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the parts with Sphinx."""
    app.connect("config-inited", repository.set_links)
    app.connect("config-inited", pages.set_theme)
    app.connect("html-page-context", pages.complete_page, priority=900)  # after every other extension
    app.connect("build-finished", assets.copy_assets)
    app.connect("build-finished", mend.mend_pages)
    app.add_directive("calculator", pages.CalculatorDirective)
    app.add_directive("exercises", pages.ExercisesDirective)
    app.add_directive("figure-list", figure_list.FigureListDirective)
    app.add_role("claim", claims.ClaimRole())
    app.add_transform(terms.LinkTerms)
    app.connect("doctree-resolved", figure_list.fill_figure_lists)
    app.connect("autodoc-process-docstring", reference.as_restructured_text)
    app.set_html_assets_policy("always")  # a page whose only mathematics is in a form needs MathJax too
    app.add_css_file("tfbook/forms.css")
    app.add_js_file("tfbook/forms.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
