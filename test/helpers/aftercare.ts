/**
 * For tests of one phase: exchanges that leave nothing behind.
 */
import { Drains } from '../../src/gateway/drains.js'
import type { Aftercare } from '../../src/gateway/exchange.js'

/** No row is written, and no place is counted. */
export const NO_AFTERCARE: Aftercare = { book: () => null, drains: new Drains() }
