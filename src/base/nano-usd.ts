/**
 * Sums of money in whole nano-dollars (1e-9 US dollars), exact at any size: a number, or from 2^53 on
 * ($9.007 million) a bigint. One form for each amount, so that equal amounts are identical.
 */
export type NanoUsd = number | bigint

/** The amount of a whole number in digits. */
export function nanoUsdOf(digits: string | bigint): NanoUsd {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : BigInt(digits)
}

/** The sum of two amounts. */
export function addNanoUsd(one: NanoUsd, other: NanoUsd): NanoUsd {
  if (typeof one === 'number' && typeof other === 'number') {
    const sum = one + other
    if (Number.isSafeInteger(sum) || !Number.isInteger(sum)) return sum
  }
  return nanoUsdOf(BigInt(one) + BigInt(other))
}

/** The first amount minus the second. */
export function withoutNanoUsd(one: NanoUsd, other: NanoUsd): NanoUsd {
  return addNanoUsd(one, -other)
}

/** The order of amounts, the lowest first. */
export function compareNanoUsd(one: NanoUsd, other: NanoUsd): number {
  return one < other ? -1 : one > other ? 1 : 0
}
