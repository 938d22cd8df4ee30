/** The names of one chat on WhatsApp. */

import type { Target } from "@nexus-stream/adapter";

/** A person whose number WhatsApp does not tell has an id. */
export const isPersonId = (to: string): boolean => /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]+$/.test(to);

/** Numbers are their digits, however people write them. */
export const digitsOf = (to: string): string => to.replace(/[^\d]/g, "");

export const chatNames = ({ to }: Target): readonly string[] => [isPersonId(to) ? to : digitsOf(to)];
