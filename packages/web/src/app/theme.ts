/** The colour scheme that a person chose, kept by the browser. */

export type Theme = "auto" | "light" | "dark";

const THEME_KEY = "nexus.theme";

export function storedTheme(): Theme {
	const theme = localStorage.getItem(THEME_KEY);
	return theme === "light" || theme === "dark" ? theme : "auto";
}

export function applyTheme(theme: Theme): void {
	if (theme === "auto") document.documentElement.removeAttribute("data-theme");
	else document.documentElement.setAttribute("data-theme", theme);
}

export function storeTheme(theme: Theme): void {
	applyTheme(theme);
	localStorage.setItem(THEME_KEY, theme);
}
