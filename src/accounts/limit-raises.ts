/**
 * Budgets that are higher until a time. The record keeps the former budget: it holds again at that time,
 * without another change. Pure.
 */
import type { KeyLimits, LimitRaise } from './account.js'

/** The limits at a time: a raised budget is as high as the raise, or as its own amount if that is higher. */
export function limitsAt(
  { limits, raises }: { readonly limits: KeyLimits; readonly raises?: readonly LimitRaise[] | undefined },
  atMs: number,
): KeyLimits {
  if (raises === undefined) return limits
  const raised = { ...limits }
  for (const { budget, nanoUsd, untilMs } of raises) {
    const amount = raised[budget]
    if (amount !== undefined && atMs < untilMs) raised[budget] = Math.max(amount, nanoUsd)
  }
  return raised
}

/** The raises that a change of the limits leaves: a budget that is changed or removed ends its raise. */
export function raisesLeft(
  raises: readonly LimitRaise[] | undefined,
  before: KeyLimits = {},
  after: KeyLimits = {},
): { readonly raises?: readonly LimitRaise[] } {
  const left = (raises ?? []).filter(({ budget }) => {
    return after[budget] !== undefined && after[budget] === before[budget]
  })
  return left.length === 0 ? {} : { raises: left }
}
