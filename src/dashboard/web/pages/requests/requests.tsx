/** Requests, newest first, with filters in the address and a drawer per request. */
import { useState } from 'react'
import type { RequestRow } from '../../../server/schema/schema.js'
import { call, problemOf, urlOf, type Query } from '../../api/client.js'
import { useLive } from '../../api/poll-live.js'
import { usePages } from '../../api/list-pages.js'
import { saveFile } from '../../format/csv.js'
import { plural } from '../../format/number.js'
import {
  filtersIn,
  isFiltered,
  matchesFilters,
  queryOf,
  type RequestFilters,
} from '../../format/request-filters.js'
import { Button } from '../../components/actions/button.js'
import { FirstCall } from '../../components/states/first-call.js'
import { report } from '../../components/states/notices.js'
import { Empty, Failed, TableSkeleton } from '../../components/states/states.js'
import { More } from '../../components/tables/show-more.js'
import { setQuery, useLocation } from '../../routing/location.js'
import { useNow } from '../../shell/clock.js'
import { Page } from '../../shell/page.js'
import { useScope } from '../../shell/shown-account.js'
import { RequestDrawer } from './request-drawer.js'
import { clearFilters, RequestFilterRow } from './request-filters.js'
import { RequestTable } from './request-table.js'

const PAGE = 50
/** `since` is rounded to steps, so that the list does not reload with each tick of the clock. */
const STEP_MS = 300_000

/** The page of requests. */
export function RequestsPage() {
  const { query } = useLocation()
  const scope = useScope()
  const nowMs = Math.floor(useNow() / STEP_MS) * STEP_MS
  const filters = filtersIn(query, nowMs)
  const asked: Query = { account: scope, ...queryOf(filters) }
  const id = query.get('request')
  return (
    <Page
      title="Requests"
      purpose="Each request with its cost and timing. Prompts and replies are never stored."
      scoped
      action={<SaveCsv asked={asked} />}
      filters={<RequestFilterRow filters={filters} />}
    >
      <List key={urlOf('', asked)} asked={asked} filters={filters} />
      {id === null ? null : <RequestDrawer id={id} onClose={() => setQuery({ request: null })} />}
    </Page>
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
    <Button
      icon="file"
      busy={busy}
      title="The requests that match the filters"
      onClick={() => void save()}
    >
      Save CSV
    </Button>
  )
}

interface ListProps {
  readonly asked: Query
  readonly filters: RequestFilters
}

/** The loaded rows; newer ones are added on demand, older ones below. */
function List({ asked, filters }: ListProps) {
  const pages = usePages(
    '/requests',
    { ...asked, limit: PAGE },
    { isEmpty: ({ rows }) => rows.length === 0 },
  )
  const [newer, setNewer] = useState<readonly RequestRow[]>([])
  const account = asked['account']
  const live = useLive(typeof account === 'string' ? account : null, filters.toMs === '')
  const { replies, problem, reload } = pages
  if (problem !== null && replies === null) {
    return (
      <Failed
        what="The list of requests"
        problem={problem}
        holds="Requests are still recorded."
        retry={() => reload()}
      />
    )
  }
  if (replies === null) return <TableSkeleton rows={12} />
  const shown = [...newer, ...replies.flatMap(({ rows }) => rows)]
  const waiting = (live?.rows ?? []).filter(
    (row) => isNew(row, shown) && matchesFilters(row, filters),
  )
  if (shown.length === 0 && waiting.length === 0) return <NoRequests filters={filters} />
  return (
    <div>
      <button
        type="button"
        className={waiting.length === 0 ? 'newer none' : 'newer'}
        disabled={waiting.length === 0}
        onClick={() => setNewer([...waiting, ...newer])}
      >
        {waiting.length === 0 ? 'Up to date' : `Show ${plural(waiting.length, 'new request')}`}
      </button>
      <RequestTable rows={shown} open={({ requestId }) => setQuery({ request: requestId })} />
      <More pages={pages} label="Older requests" />
    </div>
  )
}

function isNew(row: RequestRow, shown: readonly RequestRow[]): boolean {
  const newest = shown[0]
  if (newest !== undefined && row.atMs < newest.atMs) return false
  return shown.every(({ requestId }) => requestId !== row.requestId)
}

function NoRequests({ filters }: { readonly filters: RequestFilters }) {
  if (!isFiltered(filters)) return <FirstCall what="Each request with its cost and timing." />
  return (
    <Empty title="No requests match these filters">
      <p>Widen the time range or remove a filter.</p>
      <p>
        <Button onClick={clearFilters}>Clear filters</Button>
      </p>
    </Empty>
  )
}
