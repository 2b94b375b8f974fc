/** What a day leaves out of the tests of the page: a change of the page or of its API runs all of them. */
import { anotherDay } from '../../helpers/long-suite.js'
import { SKIP } from './browser.js'

/** For tap: each day has a sixth of the tests, by their numbers, and the long suite all. */
export function sixth(number: number): string | false {
  return SKIP === false ? anotherDay(number, 6) : SKIP
}
