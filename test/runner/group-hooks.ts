/**
 * For `group.ts`: a test file of a group that imports tap gets a module of its own, whose `t` is the file's
 * subtest.
 */
import type { ResolveHook } from 'node:module'

export const resolve: ResolveHook = (specifier, context, next) => {
  const { parentURL } = context
  if (specifier !== 'tap' || parentURL?.endsWith('.test.js') !== true) return next(specifier, context)
  const url = new URL('group-tap.js', import.meta.url)
  url.searchParams.set('file', parentURL)
  return { url: url.href, shortCircuit: true }
}
