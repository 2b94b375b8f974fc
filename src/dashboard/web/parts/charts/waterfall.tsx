/** One request's time, hop by hop, and whose it was. */
import type { Hops } from '../../../server/schema/schema.js'
import { duration } from '../../format/number.js'

type Stage = Exclude<keyof Hops, 'firstContent' | 'overhead' | 'translate'>

const STAGES: readonly { readonly hop: Stage; readonly name: string; readonly ours: boolean }[] = [
  { hop: 'authenticate', name: 'auth', ours: true },
  { hop: 'receive', name: 'receive', ours: true },
  { hop: 'route', name: 'route', ours: true },
  { hop: 'admit', name: 'limit', ours: true },
  { hop: 'connect', name: 'connect', ours: false },
  { hop: 'firstByte', name: 'first token', ours: false },
  { hop: 'relay', name: 'stream', ours: false },
]

interface Bar {
  readonly name: string
  readonly ours: boolean
  readonly fromMs: number
  readonly ms: number
}

function barsOf(hops: Hops): Bar[] {
  let fromMs = 0
  return STAGES.flatMap(({ hop, name, ours }) => {
    const ms = hops[hop]
    if (ms === undefined) return []
    const bar = { name, ours, fromMs, ms }
    fromMs += ms
    return [bar]
  })
}

/** Bars on one scale; `ours` and `provider` are the two sums under them. */
export function Waterfall({ hops, totalMs }: { readonly hops: Hops; readonly totalMs: number }) {
  const bars = barsOf(hops)
  if (bars.length === 0) return <p className="soft">No times were taken.</p>
  const end = Math.max(totalMs, ...bars.map(({ fromMs, ms }) => fromMs + ms))
  // Without a provider, all of it was ours, the wait for the client's own bytes with it.
  const isAsked = bars.some(({ ours }) => !ours)
  const ours = isAsked ? hops.overhead : totalMs
  return (
    <div className="waterfall">
      <ol className="waterfall-bars">
        {bars.map(({ name, ours: own, fromMs, ms }) => (
          <li key={name}>
            <span className="waterfall-name">{name}</span>
            <span className="waterfall-track">
              <span
                className={own ? 'waterfall-bar ours' : 'waterfall-bar'}
                style={{
                  insetInlineStart: `${(fromMs / end) * 100}%`,
                  inlineSize: `${(ms / end) * 100}%`,
                }}
              />
            </span>
            <span className="waterfall-ms">{duration(ms)}</span>
          </li>
        ))}
      </ol>
      {ours === undefined ? null : (
        <p className="waterfall-sum">
          <span className="swatch ours" /> ours {duration(ours)}
          {isAsked ? (
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
