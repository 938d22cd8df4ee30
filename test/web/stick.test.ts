/** Following the end: never against the reader's hand. */

import { describe, expect, it } from "vitest";
import { followEnd, type ScrollBox, STUCK, type Stick, stepStick } from "../../packages/web/src/ui/stick.ts";

const NEAR_PX = 48;

/** A box of 100 px whose place is kept within its content, as a browser does. */
function boxOf(scrollHeight: number) {
	let top = 0;
	return {
		scrollHeight,
		clientHeight: 100,
		get scrollTop() {
			return top;
		},
		set scrollTop(to: number) {
			top = Math.min(Math.max(0, to), this.scrollHeight - this.clientHeight);
		},
	};
}

const scrolled = (stick: Stick, box: ScrollBox, by: number): Stick => {
	box.scrollTop += by;
	return stepStick(stick, box, NEAR_PX);
};

describe("following the end", () => {
	it("keeps following while it grows, also when a scroll event is late", () => {
		const box = boxOf(500);
		let stick = followEnd(STUCK, box);
		expect(box.scrollTop).toBe(400);
		box.scrollHeight = 900;
		stick = followEnd(stepStick(stick, box, NEAR_PX), box);
		expect(box.scrollTop).toBe(800);
		expect(stick.stuck).toBe(true);
	});

	it("lets go of the smallest move up, and takes hold again near the end", () => {
		const box = boxOf(500);
		let stick = scrolled(followEnd(STUCK, box), box, -2);
		expect(stick.stuck).toBe(false);
		box.scrollHeight = 700;
		stick = followEnd(stick, box);
		expect(box.scrollTop).toBe(398);
		stick = scrolled(stick, box, 100);
		expect(stick.stuck).toBe(false);
		stick = scrolled(stick, box, 60);
		expect(stick.stuck).toBe(true);
	});

	it("stays at the end of what becomes shorter", () => {
		const box = boxOf(500);
		const stick = followEnd(STUCK, box);
		box.scrollHeight = 300;
		expect(scrolled(stick, box, 0).stuck).toBe(true);
	});
});
