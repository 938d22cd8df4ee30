export function sharedContract(_name: string, _make: () => unknown): void {}
