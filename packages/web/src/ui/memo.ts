/** A component that is drawn again only when one of its properties is another value. */

import { Component, type ComponentType, type FunctionComponent, h } from "preact";

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
