/** The phases of one request as bars, and the gateway's own share. */
import type { Hops } from '../../../control/dashboard/schema/schema.js'
import type { AttemptRow } from '../format/failure-texts.js'
import { duration } from '../format/number.js'

interface Bar {
  readonly name: string
  readonly ours: boolean
  readonly fromMs: number
  readonly ms: number
}

type Stage = Pick<Bar, 'name' | 'ours'> & { readonly ms: number | undefined }

interface WaterfallProps {
  readonly hops: Hops
  readonly totalMs: number
  readonly attempts?: readonly AttemptRow[]
}

/** One bar per attempt; a single attempt is split into connection, first token and reply. */
function upstreamStages(hops: Hops, attempts: readonly AttemptRow[]): Stage[] {
  if (attempts.length > 1 && attempts.every(({ ms }) => ms !== null)) {
    return attempts.map(({ upstream, ms }, at) => {
      return { name: `${at + 1}. ${upstream}`, ours: false, ms: ms ?? undefined }
    })
  }
  const { connect, firstByte, relay } = hops
  const [only] = attempts
  // A whole reply is read completely before it is sent.
  const replyMs = (only?.ms ?? 0) - (connect ?? 0) - (firstByte ?? 0)
  return [
    { name: 'connect', ours: false, ms: connect },
    { name: 'first token', ours: false, ms: firstByte },
    { name: 'reply', ours: false, ms: relay === undefined && replyMs > 0.5 ? replyMs : undefined },
  ]
}

function barsOf(hops: Hops, attempts: readonly AttemptRow[]): Bar[] {
  const stages: Stage[] = [
    { name: 'auth', ours: true, ms: hops.authenticate },
    { name: 'receive', ours: true, ms: hops.receive },
    { name: 'route', ours: true, ms: hops.route },
    { name: 'limit', ours: true, ms: hops.admit },
    ...upstreamStages(hops, attempts),
    { name: 'stream', ours: false, ms: hops.relay },
  ]
  let fromMs = 0
  return stages.flatMap(({ name, ours, ms }) => {
    if (ms === undefined) return []
    const bar = { name, ours, fromMs, ms }
    fromMs += ms
    return [bar]
  })
}

/** Bars on one scale, with the sums of the gateway and of the provider. */
export function Waterfall({ hops, totalMs, attempts = [] }: WaterfallProps) {
  const bars = barsOf(hops, attempts)
  if (bars.length === 0) return <p className="soft">No timing recorded.</p>
  const end = Math.max(totalMs, ...bars.map(({ fromMs, ms }) => fromMs + ms))
  // Without an upstream, the whole time is the gateway's, including the wait for the client's bytes.
  const hasUpstream = bars.some(({ ours }) => !ours)
  const ours = hasUpstream ? hops.overhead : totalMs
  return (
    <div className="waterfall stack">
      <ol className="stack gap-4">
        {bars.map(({ name, ours: own, fromMs, ms }) => (
          <li key={name}>
            <span className="note">{name}</span>
            <span className="waterfall-track">
              <span
                className={own ? 'waterfall-bar ours' : 'waterfall-bar'}
                style={{
                  insetInlineStart: `${(fromMs / end) * 100}%`,
                  inlineSize: `${(ms / end) * 100}%`,
                }}
              />
            </span>
            <span className="small">{duration(ms)}</span>
          </li>
        ))}
      </ol>
      {ours === undefined ? null : (
        <p className="note">
          <span className="swatch ours" /> ours {duration(ours)}
          {hasUpstream ? (
            <>
              {' '}
              · <span className="swatch" /> provider {duration(Math.max(totalMs - ours, 0))}
            </>
          ) : null}
        </p>
      )}
    </div>
  )
}
