/** Reports a name that is not the name of an upstream. */
import type { Path, ReportFinding } from '../problem.js'
import { nearest } from '../suggest-spelling.js'

/** More names are not listed in a message. */
const MAX_LISTED = 10

/** The name of an upstream in a setting, and the path of the setting. */
export interface UpstreamName {
  readonly name: string
  readonly path: Path
}

/** Reports that `name` is not one of `upstreams`, with a suggestion or the list of names. */
export function reportUnknownUpstream(
  { name, path }: UpstreamName,
  upstreams: readonly string[],
  report: ReportFinding,
): void {
  const suggestion = nearest(name, upstreams)
  const isListed = suggestion === null && upstreams.length > 0 && upstreams.length <= MAX_LISTED
  const list = isListed ? `: use one of ${upstreams.join(', ')}` : ''
  report(path, `is not an upstream of this file${list}`, suggestion)
}
