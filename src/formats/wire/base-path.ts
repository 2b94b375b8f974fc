/** The path of an upstream's URL, below which the paths of its endpoints are. */

/** The path without a version at its end, for endpoints whose own path has one. */
export function withoutVersion(base: string): string {
  return base.replace(/\/v\d[a-z0-9]*$/, '')
}
