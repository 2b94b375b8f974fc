/** What a day leaves out of the tests of the page: a change of the page or of its API runs all of them. */
import { anotherDay } from '../../helpers/long-suite.js'
import { SKIP } from './browser.js'

/** For tap: of the tests of a file, by their numbers, each day has one half, and the long suite all. */
export function half(number: number): string | false {
  return SKIP === false ? anotherDay(number, 2) : SKIP
}
