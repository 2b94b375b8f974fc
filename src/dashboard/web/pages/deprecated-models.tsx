/** Models with an announced end: who still uses them, and what to use instead. */
import type { DeprecatedModel } from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { amounts, counts, names } from '../components/columns.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Empty, Loaded } from '../components/loading-states.js'
import { Absent } from '../components/values.js'
import { count, plural } from '../format/number.js'
import { Link } from '../routing.js'
import { Block } from '../shell/page.js'
import { useScope, withScope } from '../shell/session.js'

/** Users of a model shown in its row; the others are in Usage. */
const SHOWN = 5

/** The view of the page of models. */
export function DeprecatedModels() {
  const account = useScope()
  const resource = useResource('/models/deprecated', { account })
  const filter = urlOf('/requests', { account, deprecated: 'true' })
  return (
    <Loaded resource={resource} what="The list of ending models" unaffected="Models keep working.">
      {({ models, fromMs, toMs }) =>
        models.length === 0 ? (
          <Empty title="No model has an announced end">
            <p>
              The catalogue has no <code>shutdown</code> for any model.
            </p>
          </Empty>
        ) : (
          <Block
            title="Models with an announced end"
            note="use of the last 30 days (UTC)"
            action={<Link to={filter}>Their requests</Link>}
          >
            <DataTable
              caption="Models with an announced end"
              columns={[...factsOf(account), ...usersOf(account, fromMs, toMs)]}
              rows={models}
              keyOf={({ id }) => id}
              faded={({ requests }) => requests === 0}
            />
          </Block>
        )
      }
    </Loaded>
  )
}

interface Use {
  readonly key: string
  readonly text: string
  readonly to: string
  readonly requests: number
}

/** The largest users, and a link to all of them. */
function Uses({
  uses,
  all,
  to,
}: {
  readonly uses: readonly Use[]
  readonly all: number
  readonly to: string
}) {
  if (uses.length === 0) return <span className="soft">none</span>
  return (
    <ul className="stack gap-4">
      {uses.slice(0, SHOWN).map(({ key, text, to: target, requests }) => (
        <li key={key} className="cut">
          <Link to={target} title={text}>
            {text}
          </Link>{' '}
          <span className="soft">{count(requests)}</span>
        </li>
      ))}
      {all <= SHOWN ? null : (
        <li>
          <Link to={to}>all {all}</Link>
        </li>
      )}
    </ul>
  )
}

/** The model, its end, its successor and its use. */
function factsOf(account: string | null): Column<DeprecatedModel>[] {
  return [
    names('id', 'Model', ({ id }) => id, { strong: true }),
    { id: 'ends', head: 'Ends', cell: ({ endsOn }) => endsOn, value: ({ endsOn }) => endsOn },
    {
      id: 'successor',
      head: 'Use instead',
      cell: ({ successor }) =>
        successor === null ? (
          <Absent />
        ) : (
          <Link to={withScope(`/models?model=${encodeURIComponent(successor)}`, account)}>{successor}</Link>
        ),
      value: ({ successor }) => successor,
      extra: true,
    },
    counts('day', 'Requests / day', ({ requestsPerDay }) => requestsPerDay, {
      cell: ({ requestsPerDay, requests: all, days }) => (
        <span title={`${plural(all, 'request')} on ${plural(days.length, 'day')}`}>
          {requestsPerDay < 10 ? Number(requestsPerDay.toFixed(1)) : count(requestsPerDay)}
        </span>
      ),
      minor: true,
    }),
    amounts('cost', 'Cost', ({ costNanoUsd }) => costNanoUsd, { minor: true }),
  ]
}

/** Who uses the model. */
function usersOf(account: string | null, fromMs: number, toMs: number): Column<DeprecatedModel>[] {
  const span = {
    from: new Date(fromMs).toISOString().slice(0, 10),
    to: new Date(toMs - 1).toISOString().slice(0, 10),
  }
  const usage = (model: string, group: string): string =>
    urlOf('/usage', { account, model, group, ...span, zone: 'UTC' })
  const requests = (query: Record<string, string>): string =>
    urlOf('/requests', { account, from: fromMs, to: toMs, ...query })
  return [
    {
      id: 'keys',
      head: 'Keys',
      cell: ({ id, keys, keyCount }) => (
        <Uses
          uses={keys.map((key) => ({
            key: `${key.accountId} ${key.id}`,
            text: key.accountName === null ? key.name : `${key.name}, ${key.accountName}`,
            to: requests({ model: id, key: key.id, account: key.accountId }),
            requests: key.requests,
          }))}
          all={keyCount}
          to={usage(id, 'key')}
        />
      ),
      text: true,
    },
    {
      id: 'accounts',
      head: 'Accounts',
      cell: ({ id, accounts }) => (
        <Uses
          uses={accounts.map(({ name, requests: all }) => ({
            ...{ key: name, text: name, requests: all },
            to: urlOf('/usage', { account: name, model: id, group: 'key', ...span, zone: 'UTC' }),
          }))}
          all={accounts.length}
          to={usage(id, 'account')}
        />
      ),
      text: true,
      extra: true,
    },
    {
      id: 'labels',
      head: 'Labels',
      cell: ({ id, labels }) => (
        <Uses
          uses={labels.map(({ label, requests: all }) => ({
            ...{ key: label, text: label, requests: all },
            to: requests({ model: id, label }),
          }))}
          all={labels.length}
          to={usage(id, `label:${labels[0]?.label.split('=')[0] ?? ''}`)}
        />
      ),
      text: true,
      extra: true,
    },
  ]
}
