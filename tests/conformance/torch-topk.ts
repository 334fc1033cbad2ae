/**
 * Which of several equal values torch's `topk` takes on the CPU. With k·64 > n it calls C++'s `nth_element`, whose
 * order among equals follows from its partitions (libstdc++'s introselect), so cases with ties need the same steps. For
 * other sizes, and without ties, the order does not matter here.
 */
export function torchTopk(values: ArrayLike<number>, k: number): number[] {
  const queue = Array.from({ length: values.length }, (_, i) => i);
  const before = (a: number, b: number) =>
    (Number.isNaN(values[a]!) && !Number.isNaN(values[b]!)) || values[a]! > values[b]!;
  if (k * 64 <= queue.length) {
    queue.sort((a, b) => (before(a, b) ? -1 : before(b, a) ? 1 : a - b));
  } else if (k > 0 && k <= queue.length) {
    nthElement(queue, k - 1, before);
  }
  return queue.slice(0, k);
}

type Before = (a: number, b: number) => boolean;

/** The n-th place gets the element that a sort would put there; those before it come before it. */
function nthElement(queue: number[], n: number, before: Before): void {
  let [first, last] = [0, queue.length];
  while (last - first > 3) {
    const cut = partitionByPivot(queue, first, last, before);
    if (cut <= n) first = cut;
    else last = cut;
  }
  insertionSort(queue, first, last, before);
}

function partitionByPivot(queue: number[], first: number, last: number, before: Before): number {
  medianToFirst(queue, first, first + 1, first + ((last - first) >> 1), last - 1, before);
  const pivot = queue[first]!;
  let [left, right] = [first + 1, last];
  for (;;) {
    while (before(queue[left]!, pivot)) left++;
    right--;
    while (before(pivot, queue[right]!)) right--;
    if (left >= right) return left;
    swap(queue, left, right);
    left++;
  }
}

function medianToFirst(queue: number[], result: number, a: number, b: number, c: number, before: Before): void {
  const [x, y, z] = [queue[a]!, queue[b]!, queue[c]!];
  if (before(x, y)) swap(queue, result, before(y, z) ? b : before(x, z) ? c : a);
  else swap(queue, result, before(x, z) ? a : before(y, z) ? c : b);
}

function insertionSort(queue: number[], first: number, last: number, before: Before): void {
  for (let i = first + 1; i < last; i++) {
    const moved = queue[i]!;
    let place = i;
    while (place > first && before(moved, queue[place - 1]!)) {
      queue[place] = queue[place - 1]!;
      place--;
    }
    queue[place] = moved;
  }
}

function swap(queue: number[], a: number, b: number): void {
  [queue[a], queue[b]] = [queue[b]!, queue[a]!];
}
