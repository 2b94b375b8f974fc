/**
 * What a run of the suite leaves to the long suite (`npm run test:long`): most cases of loops over many like
 * cases, and tests that mostly wait. Each day has another twentieth of the cases, so that twenty days see
 * every case.
 */

/** Whether this is the long suite. */
export const IS_LONG = process.env['SLUICE_LONG'] === '1'

const TWENTIETHS = 20
const DAY_MS = 86_400_000

/** Days since 1970 in UTC; the runner prints it, and `SLUICE_DAY` repeats the cases of another day. */
export const DAY = Number(process.env['SLUICE_DAY'] ?? Math.floor(Date.now() / DAY_MS))

/** The twentieths of this run, from 0 to 19: that of the day, in the long suite all. */
export const TODAY: readonly number[] = IS_LONG
  ? Array.from({ length: TWENTIETHS }, (_, part) => part)
  : [DAY % TWENTIETHS]

/** The share of all cases that this run has. */
export const SHARE = TODAY.length / TWENTIETHS

/** Whether the case with this number is one of this run, if a day has one of this number of parts. */
export function isToday(index: number, parts = TWENTIETHS): boolean {
  return IS_LONG || index % parts === DAY % parts
}

/** The reason to skip the case with this number, as for `isToday`; false if it is one of this run. */
export function anotherDay(index: number, parts: number): string | false {
  return isToday(index, parts) ? false : 'another day, and the long suite'
}

/** Of tests of one rule on both stores, by their number, each day has one, and the long suite both. */
export function anotherStore(engine: string, index: number): string | false {
  return anotherDay(index + (engine === 'redis' ? 1 : 0), 2)
}

/** The cases of this run. */
export function* ofToday<T>(cases: Iterable<T>, parts = TWENTIETHS): Generator<T> {
  let index = 0
  for (const each of cases) {
    if (isToday(index, parts)) yield each
    index += 1
  }
}
