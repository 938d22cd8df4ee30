/** The smallest parts of a view: icons, boxes that scroll, and components that are drawn again only for new properties. */

import {
	type ButtonHTMLAttributes,
	Component,
	type ComponentChildren,
	type ComponentType,
	type FunctionComponent,
	h,
	type JSX,
} from "preact";

const PATHS = {
	menu: "M4 7h16M4 12h16M4 17h16",
	plus: "M12 5v14M5 12h14",
	send: "M12 19V5M6 11l6-6 6 6",
	stop: "M8 8h8v8H8z",
	copy: "M9 9h10v10H9zM5 15V5h10",
	check: "M5 12.5l4.5 4.5L19 7.5",
	cross: "M6 6l12 12M18 6L6 18",
	chevron: "M9 6l6 6-6 6",
	left: "M15 6l-6 6 6 6",
	down: "M12 5v14M6 13l6 6 6-6",
	sun: "M12 8a4 4 0 1 0 .01 0zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
	moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
	auto: "M12 4a8 8 0 1 0 .01 0zM12 4v16",
	play: "M8 5.5v13l10.5-6.5z",
	again: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
	pause: "M9 6v12M15 6v12",
	rewind: "M6 6v12M18 6l-8 6 8 6z",
	wrench: "M14.5 6.5a4 4 0 0 0 5 5L11 20l-3-3 8.5-8.5M14.5 6.5l3-3a4 4 0 0 1 2 5",
	thought: "M9.5 18h5M10.5 21h3M12 3a6 6 0 0 0-3.5 10.9c.6.5 1 1.2 1 2V16h5v-.1c0-.8.4-1.5 1-2A6 6 0 0 0 12 3z",
	pulse: "M3 12h4l2.5-7 5 14L17 12h4",
	warn: "M12 4l9 16H3zM12 10v4M12 17v.5",
	chat: "M5 5h14v10H10l-4 4v-4H5z",
	flask: "M10 3h4M11 3v6l-5.5 9.5A1.7 1.7 0 0 0 7 21h10a1.7 1.7 0 0 0 1.5-2.5L13 9V3M8 15h8",
	graph: "M6 4h4v4H6zM14 16h4v4h-4zM6 16h4v4H6zM8 8v8M8 12h8v4",
	leave: "M10 4H5v16h5M10 12h10M16 8l4 4-4 4",
	file: "M7 3h7l4 4v14H7zM14 3v4h4M12.5 11v6M10 14.5l2.5 2.5 2.5-2.5",
	plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
	clip: "M19 11.5l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4l8-8a3 3 0 0 1 4.3 4.3l-8 8a1.5 1.5 0 0 1-2.1-2.1l7-7",
	shield: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z",
	zoomIn: "M11 5a6 6 0 1 0 .01 0zM15.5 15.5L20 20M11 8.5v5M8.5 11h5",
	zoomOut: "M11 5a6 6 0 1 0 .01 0zM15.5 15.5L20 20M8.5 11h5",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
	<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
		<path d={PATHS[name]} />
	</svg>
);

export interface ButtonProps extends ButtonHTMLAttributes {
	icon?: IconName;
	text: string;
}

/** A button with a text, and an icon before it. */
export const Button = ({ icon, text, ...attributes }: ButtonProps) => (
	<button type="button" {...attributes}>
		{icon && <Icon name={icon} />}
		{icon ? ` ${text}` : text}
	</button>
);

/** A button that shows only an icon. */
export const RoundButton = (props: { label: string; icon: IconName; class?: string; onClick(): void }) => (
	<button type="button" class={`round ${props.class ?? ""}`.trimEnd()} onClick={props.onClick} aria-label={props.label}>
		<Icon name={props.icon} />
	</button>
);

interface ScrollableProps {
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

export function memo<P extends object>(Inner: FunctionComponent<P>): ComponentType<P> {
	return class extends Component<P> {
		override shouldComponentUpdate(next: P): boolean {
			const current = this.props as Record<string, unknown>;
			const keys = new Set([...Object.keys(current), ...Object.keys(next)]);
			return [...keys].some((key) => current[key] !== (next as Record<string, unknown>)[key]);
		}
		override render() {
			return h(Inner, this.props);
		}
	};
}
