/** Why a request failed: the client's error message, the cause, and the limit that refused it. */
import type { RequestRow } from '../../../server/schema/schema.js'
import { adviceFor, CAUSE_NAMES, causeText } from '../../format/failure-texts.js'
import { limitText, resetsAtMs } from '../../format/limits.js'
import { clockTime, fullTime } from '../../format/time.js'

/** The block at the head of the drawer; renders nothing for a successful request. */
export function Failure({ row }: { readonly row: RequestRow }) {
  const { outcome, cause, errorMessage } = row
  if (cause === null) return null
  const advice = adviceFor(outcome)
  return (
    <section className={`failure ${cause}`} aria-label="Failure">
      <p className="failure-head">
        <span className="tag">{CAUSE_NAMES[cause]}</span>
        <code>{outcome}</code>
      </p>
      <p className="failure-message">
        {errorMessage ?? <span className="soft">No message recorded.</span>}
      </p>
      <dl className="facts">
        <dt>Caused by</dt>
        <dd>{causeText(row)}</dd>
        {row.limit === null ? null : <LimitFacts row={row} limit={row.limit} />}
        {row.upstreamStatus === null ? null : (
          <>
            <dt>Upstream reply</dt>
            <dd>
              status {row.upstreamStatus}
              {row.upstreamRequestId === null ? null : (
                <>
                  , request <code>{row.upstreamRequestId}</code>
                </>
              )}
            </dd>
          </>
        )}
        {advice === null ? null : (
          <>
            <dt>What to do</dt>
            <dd>{advice}</dd>
          </>
        )}
      </dl>
    </section>
  )
}

function LimitFacts({ row, limit }: { readonly row: RequestRow; readonly limit: string }) {
  const atMs = resetsAtMs(row)
  return (
    <>
      <dt>Limit</dt>
      <dd>
        {limitText(limit)} <code className="soft">{limit}</code>
      </dd>
      <dt>Resets</dt>
      <dd>
        {atMs === null ? (
          'when a running request ends'
        ) : (
          <time dateTime={new Date(atMs).toISOString()} title={fullTime(atMs)}>
            {atMs - row.atMs < 3_600_000 ? clockTime(atMs) : fullTime(atMs)}
          </time>
        )}
      </dd>
    </>
  )
}
