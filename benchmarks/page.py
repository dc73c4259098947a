"""How long the reader waits for the page's Python: `make bench`.

In headless Chromium, from the built book: from the first touch of a calculator to its first
number, then from each slider step to the number it changes. Prints medians and the spread.
"""

from statistics import median

from playwright.sync_api import sync_playwright
from tqdm.auto import tqdm

from tests.site.conftest import CHAPTER, chromium, serving

STARTS, STEPS = 5, 60
# Set a slider to one of its stops, and resolve with the milliseconds until the result changes.
STEP = """async ([id, label, stop]) => {
  const form = document.getElementById(id);
  const slider = form.querySelector(`[aria-label="${label}, slider"]`);
  const result = form.querySelector(".tfb-result");
  const begun = performance.now();
  return await new Promise((resolve) => {
    new MutationObserver((_, watcher) => {
      watcher.disconnect();
      resolve(performance.now() - begun);
    }).observe(result, { childList: true });
    slider.value = stop;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
}"""


def main() -> None:
    """Measure and print."""
    starts: list[float] = []
    steps: list[float] = []
    with serving() as address, sync_playwright() as playwright, chromium(playwright) as browser:
        for _ in tqdm(range(STARTS), unit="start"):
            page = browser.new_context().new_page()
            page.goto(f"{address}{CHAPTER}.html")
            starts.append(page.evaluate(STEP, ["calculator-attention", "H, query heads", 3]))
            for step in range(STEPS // STARTS):
                request = ["calculator-attention", "T, length", 2 + step % 8]
                steps.append(page.evaluate(STEP, request))
            page.context.close()
    for name, times in (("first touch to first number", starts), ("slider step to its number", steps)):
        middle, low, high = median(times), min(times), max(times)
        print(f"{name:<28} median {middle:.1f} ms, {low:.1f} to {high:.1f}, {len(times)} runs")


if __name__ == "__main__":
    main()
