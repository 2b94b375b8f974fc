/** Outages, on every page: a strip with what fails and whom it hits, and the count for the rail. */
import { useEffect, useState } from 'react'
import type { IncidentsReply } from '../../../control/dashboard/schema/schema.js'
import { useResource } from '../api/use-resource.js'
import { IconButton } from '../components/button.js'
import { kindText } from '../format/failure-texts.js'
import { duration, percent, plural } from '../format/number.js'
import { clockTime } from '../format/time.js'
import { Link } from '../routing.js'
import { useRights } from './session.js'

const EVERY_MS = 10_000

type Incident = IncidentsReply['open'][number]

/** The outages; all parts of the page share one reply. */
export function useIncidents(): IncidentsReply | null {
  return useResource('/incidents', {}, { everyMs: EVERY_MS }).data
}

/** The strip; nothing while all is well. */
export function IncidentStrip() {
  const data = useIncidents()
  const { readsGateway } = useRights()
  const [dismissed, dismiss] = useState(0)
  const open = data?.open ?? []
  const isOut = open.length > 0
  useEffect(() => {
    const plain = document.title.replace(/^\(!\) /, '')
    document.title = isOut ? `(!) ${plain}` : plain
  })
  const [first] = open
  const refusedMs = data?.configurationRefusedMs ?? null
  const recovered = data?.recovered.findLast(({ atMs }) => atMs > dismissed)
  const isShown = isOut || refusedMs !== null || recovered !== undefined
  return (
    <div role="status" className={isShown ? `incident row line ${isOut ? 'out' : ''}`.trimEnd() : 'unseen'}>
      {first !== undefined ? (
        <>
          <p>
            <span className="status bad">{textOf(first)}</span>
            {open.length > 1 ? ` And ${open.length - 1} more.` : ''}
          </p>
          <Link className="end" to={failuresLink(first, readsGateway)}>
            See failures
          </Link>
        </>
      ) : refusedMs !== null ? (
        <>
          <p className="status warn">
            The configuration file of {clockTime(refusedMs)} was refused; the last good generation goes on.
          </p>
          <Link className="end" to="/operations">
            See why
          </Link>
        </>
      ) : recovered !== undefined ? (
        <>
          <p className="soft">
            {recovered.upstream} recovered at {clockTime(recovered.atMs)} after {duration(recovered.lengthMs)}
            ; {plural(recovered.requests, 'request')} failed.
          </p>
          <span className="end">
            <IconButton icon="close" label="Dismiss" onClick={() => dismiss(recovered.atMs)} />
          </span>
        </>
      ) : null}
    </div>
  )
}

/** `google: 100 % of 26 a minute fail since 23:15:02 (500). Breaker open. 55 requests of 2 accounts.` */
function textOf(incident: Incident): string {
  const { upstream, sinceMs, share, attemptsPerMinute, what, breaker, requests, isPart, accounts } = incident
  const since = `since ${clockTime(sinceMs)}`
  const count = `${isPart ? 'more than ' : ''}${plural(requests, 'request')}`
  if (upstream === null) {
    return `Requests to ${incident.models.join(', ')} fail ${since} at the provider. ${count} of yours.`
  }
  const how = what === null ? '' : ` (${/^\d+$/.test(what) ? what : kindText(what)})`
  const fails =
    share === null
      ? `${upstream}: no attempts in the last minute, failing ${since}${how}.`
      : `${upstream}: ${percent(share)} of ${attemptsPerMinute} a minute fail ${since}${how}.`
  const state = breaker === null || breaker === 'closed' ? '' : ` Breaker ${breaker.replace('_', '-')}.`
  return `${fails}${state}${requests === 0 ? '' : ` ${count} of ${plural(accounts, 'account')}.`}`
}

/** The failures of the incident: its upstream, its cause, from its start on. */
function failuresLink({ upstream, sinceMs, cause }: Incident, readsGateway: boolean): string {
  const query = new URLSearchParams({
    ...(readsGateway ? { account: 'all' } : {}),
    ...(upstream === null ? { outcome: 'failed' } : { upstream, cause }),
    from: String(sinceMs),
  })
  return `/requests?${query.toString()}`
}
