/** Single requests, newest first, with filters in the address and a drawer for each. */
import { useState } from 'react'
import type { RequestRow } from '../../../server/schema/schema.js'
import { ask } from '../../api/calls.js'
import { call, problemOf, urlOf, type Query } from '../../api/client.js'
import { useLive } from '../../api/live.js'
import { useResource } from '../../api/resource.js'
import { saveFile } from '../../format/csv.js'
import { plural } from '../../format/number.js'
import { meetsTerms, searchTerms } from '../../format/request-search.js'
import { fullTime } from '../../format/time.js'
import { Button } from '../../parts/actions/button.js'
import { FirstCall } from '../../parts/states/first-call.js'
import { announce, report } from '../../parts/states/notice.js'
import { Pulse } from '../../parts/states/pulse.js'
import { Search } from '../../parts/forms/search.js'
import { Empty, Failed, TableSkeleton } from '../../parts/states/states.js'
import { setQuery, usePlace } from '../../routing/place.js'
import { Page } from '../../shell/page.js'
import { useScope } from '../../shell/scope.js'
import { RequestDrawer } from './request-drawer.js'
import { RequestTable } from './request-table.js'
import { UsageFilters } from '../usage/usage.js'

const PAGE = 50

interface Filters {
  readonly model: string
  readonly keyId: string
  readonly outcome: string
  readonly fromMs: string
  readonly toMs: string
  readonly search: string
}

function useFilters(): Filters {
  const { query } = usePlace()
  const of = (name: string): string => query.get(name) ?? ''
  return {
    model: of('model'),
    keyId: of('key'),
    outcome: of('outcome') === 'failed' ? 'failed' : '',
    fromMs: of('fromMs'),
    toMs: of('toMs'),
    search: of('search'),
  }
}

/** The page of requests. */
export function RequestsPage() {
  const { query } = usePlace()
  const scope = useScope()
  const filters = useFilters()
  const { search, ...plain } = filters
  const asked: Query = { account: scope, ...plain, ...searchTerms(search) }
  const id = query.get('request')
  return (
    <Page
      title="Requests"
      purpose="Each request with its cost and its time, hop by hop. What was said is never kept."
      action={<SaveCsv asked={asked} />}
      filters={<RequestFilters filters={filters} />}
    >
      <List key={urlOf('', asked)} asked={asked} filters={filters} />
      {id === null ? null : <RequestDrawer id={id} onClose={() => setQuery({ request: null })} />}
    </Page>
  )
}

function RequestFilters({ filters }: { readonly filters: Filters }) {
  const { model, keyId, outcome, fromMs, toMs, search } = filters
  const isSpan = fromMs !== '' || toMs !== ''
  return (
    <>
      <Search
        label="Search requests"
        hint="429, upstream:openai, asked:gpt-5.4 or req_…"
        value={search}
      />
      <UsageFilters model={model} keyId={keyId} />
      <button
        type="button"
        className="filter toggle"
        aria-pressed={outcome === 'failed'}
        onClick={() => setQuery({ outcome: outcome === 'failed' ? null : 'failed' })}
      >
        Failed only
      </button>
      {isSpan ? (
        <button
          type="button"
          className="filter set"
          aria-label="All times again"
          onClick={() => setQuery({ fromMs: null, toMs: null })}
        >
          {fromMs === '' ? 'until' : `from ${fullTime(Number(fromMs))}`}
          {toMs === '' ? '' : ` to ${fullTime(Number(toMs))}`} ×
        </button>
      ) : null}
      <Pulse on={!isSpan} />
    </>
  )
}

function SaveCsv({ asked }: { readonly asked: Query }) {
  const [busy, setBusy] = useState(false)
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      saveFile('requests.csv', await (await call('GET', urlOf('/requests.csv', asked))).text())
      report('Saved requests.csv.')
    } catch (error) {
      report(`Not saved. ${problemOf(error).message}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button icon="file" busy={busy} onClick={() => void save()}>
      Save CSV
    </Button>
  )
}

interface ListProps {
  readonly asked: Query
  readonly filters: Filters
}

/** The rows: those of the first answer, newer ones when they are asked for, older ones below. */
function List({ asked, filters }: ListProps) {
  const first = useResource('/requests', { ...asked, limit: PAGE })
  const [older, setOlder] = useState<{ rows: readonly RequestRow[]; next: string | null } | null>(
    null,
  )
  const [newer, setNewer] = useState<readonly RequestRow[]>([])
  const live = useLive(
    asked['account'] === null ? null : String(asked['account']),
    filters.toMs === '',
  )
  const { data, problem, reload } = first
  if (problem !== null && data === null) {
    return (
      <Failed
        what="The list of requests"
        problem={problem}
        holds="Requests are recorded all the same."
        retry={() => reload()}
      />
    )
  }
  if (data === null) return <TableSkeleton rows={12} />
  const shown = [...newer, ...data.rows, ...(older?.rows ?? [])]
  const waiting = (live?.rows ?? []).filter((row) => isNew(row, shown, filters))
  const next = older === null ? data.next : older.next
  const more = async (): Promise<void> => {
    const page = await ask('/requests', { ...asked, limit: PAGE, after: next })
    setOlder({ rows: [...(older?.rows ?? []), ...page.rows], next: page.next })
    announce(`${plural(page.rows.length, 'more request')}.`)
  }
  const take = (): void => setNewer([...waiting, ...newer])
  if (shown.length === 0 && waiting.length === 0) return <Nothing filters={filters} />
  return (
    <div>
      <button
        type="button"
        className={waiting.length === 0 ? 'newer none' : 'newer'}
        disabled={waiting.length === 0}
        onClick={take}
      >
        {waiting.length === 0 ? 'Up to date' : `Show ${plural(waiting.length, 'new request')}`}
      </button>
      <RequestTable rows={shown} open={({ requestId }) => setQuery({ request: requestId })} />
      {next === null ? null : (
        <p className="more">
          <Button onClick={() => void more()}>Older requests</Button>
        </p>
      )}
    </div>
  )
}

function isNew(row: RequestRow, shown: readonly RequestRow[], filters: Filters): boolean {
  const newest = shown[0]
  if (newest !== undefined && row.atMs < newest.atMs) return false
  if (filters.model !== '' && row.model !== filters.model) return false
  if (filters.keyId !== '' && row.keyId !== filters.keyId) return false
  if (filters.outcome === 'failed' && row.outcome === 'ok') return false
  if (!meetsTerms(row, searchTerms(filters.search))) return false
  return shown.every(({ requestId }) => requestId !== row.requestId)
}

function Nothing({ filters }: { readonly filters: Filters }) {
  const isFiltered = Object.values(filters).some((value) => value !== '')
  if (!isFiltered) return <FirstCall what="Each request with its model, tokens, cost and time." />
  return (
    <Empty title="No request fits these filters">
      <p>
        <Button
          onClick={() =>
            setQuery({
              ...{ model: null, key: null, outcome: null, fromMs: null, toMs: null, search: null },
            })
          }
        >
          Clear the filters
        </Button>
      </p>
    </Empty>
  )
}
