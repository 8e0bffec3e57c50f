/**
 * Light or dark: as the system says, until somebody chooses. The choice is kept in this browser. Loaded before the
 * first paint, so that nothing flashes.
 */

const KEPT = "satchel.theme";
const root = document.documentElement;
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // storage may be forbidden
  }
}

/** @param {string | null} theme */
function keep(theme) {
  try {
    if (theme) localStorage.setItem(KEPT, theme);
    else localStorage.removeItem(KEPT);
  } catch {
    // then it lasts as long as the page
  }
}

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches;
}

/** @param {string | null} theme */
function apply(theme) {
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  else delete root.dataset.theme;
}

/** The other theme. Who chooses what the system says anyway follows the system from then on. */
function turn() {
  const wanted = isDark() ? "light" : "dark";
  const asSystem = (wanted === "dark") === systemIsDark.matches;
  apply(asSystem ? null : wanted);
  keep(asSystem ? null : wanted);
}

/**
 * Let a button turn the theme.
 * @param {HTMLButtonElement} button
 */
export function turnedBy(button) {
  const tell = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Dark theme");
  };
  button.addEventListener("click", () => {
    turn();
    tell();
  });
  systemIsDark.addEventListener("change", tell);
  tell();
}

apply(kept());
