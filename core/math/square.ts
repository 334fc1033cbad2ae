/** Returns x·x, which is also what `x ** 2` means in every version of Node. */
export const square = (x: number): number => x * x;
