/** Something wider or higher than its place: it scrolls, and what scrolls can be reached by keyboard. */

import { type ComponentChildren, h, type JSX } from "preact";

export interface ScrollableProps {
	as: "div" | "pre" | "ul";
	class?: string;
	label?: string;
	children: ComponentChildren;
}

export const Scrollable = ({ as, class: name, label, children }: ScrollableProps): JSX.Element =>
	h(
		as,
		{ class: name, tabIndex: 0, "aria-label": label, role: label && as === "div" ? "region" : undefined },
		children,
	);
