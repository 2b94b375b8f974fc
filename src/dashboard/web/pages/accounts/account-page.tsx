/** The page of an account: its budget, keys, members, the accounts below it, and what changed in it. */
import { useState, type ReactNode } from 'react'
import type { AccountPageReply, LimitLevel } from '../../../../control/dashboard/schema/schema.js'
import { useList, useResource } from '../../api/use-resource.js'
import { Button, CreateButton } from '../../components/button.js'
import { DataTable } from '../../components/data-table.js'
import { useDialog } from '../../components/dialog.js'
import { Fact, Facts } from '../../components/facts.js'
import { LimitBar, useLimits } from '../../components/limits.js'
import { Empty, Loaded } from '../../components/loading-states.js'
import { Day } from '../../components/values.js'
import { count, dollars, exactCount, exactDollars, percent } from '../../format/number.js'
import { monthName } from '../../format/time.js'
import { accountOfPath, go, Link, useLocation } from '../../routing.js'
import { Block, Page } from '../../shell/page.js'
import { useRights } from '../../shell/session.js'
import { AUDIT_COLUMNS } from '../audit.js'
import { CostChart } from '../cost-chart.js'
import { FailureTable } from '../failure-groups.js'
import { KeysOf } from '../keys/keys.js'
import { labelsText, limitTexts } from '../keys/key-draft.js'
import { AddMember, MemberList } from '../members.js'
import { RaiseButton, RaiseNote } from '../raise-budget.js'
import { AccountLimits, CreateAccount, DisableAccount, EditAccount, PasswordLink } from './account-dialogs.js'
import { AccountTree, BudgetBar } from './account-tree.js'

const EVERY_MS = 15_000
/** Failures of the summary. */
const FAILURES = 5
/** Changes of the tab. */
const CHANGES = 50

const TABS = [
  { id: 'summary', name: 'Summary' },
  { id: 'keys', name: 'Keys' },
  { id: 'members', name: 'Members' },
  { id: 'limits', name: 'Budget and limits' },
  { id: 'activity', name: 'Activity' },
  { id: 'settings', name: 'Settings' },
] as const
type Tab = (typeof TABS)[number]['id']

/** The page of the account that the path names. */
export function AccountPage() {
  const { path, query } = useLocation()
  const name = accountOfPath(path) ?? ''
  const resource = useResource('/accounts/{id}', { id: name }, { everyMs: EVERY_MS })
  const [isEditing, edit] = useState(false)
  const tab = TABS.find(({ id }) => id === query.get('tab'))?.id ?? 'summary'
  const data =
    resource.data?.account.name === name || resource.data?.account.id === name ? resource.data : null
  return (
    <Page
      title={data?.account.displayName ?? name}
      purpose={data === null ? 'Account' : <Head page={data} />}
      action={<MainAction tab={tab} page={data} edit={() => edit(true)} />}
    >
      <Tabs name={name} tab={tab} />
      <Loaded resource={{ ...resource, data }} what="The account" unaffected="Its keys keep working.">
        {(page) => <TabContent tab={tab} page={page} edit={() => edit(true)} />}
      </Loaded>
      {isEditing ? <AccountLimits name={name} onClose={() => edit(false)} /> : null}
    </Page>
  )
}

function Head({ page: { account, owners } }: { readonly page: AccountPageReply }) {
  const { name, displayName, above, disabled } = account
  const labels = Object.entries(account.labels).map(([label, value]) => `${label}=${value}`)
  const isNamed = above.length > 0 || displayName !== name
  const texts = [
    ...(isNamed ? [name] : []),
    ...labels,
    owners.length === 0 ? 'no owner' : `owned by ${owners.join(', ')}`,
  ]
  return (
    <>
      {above.map((each) => (
        <span key={each}>
          <Link to={`/accounts/${each}`}>{each}</Link> ›{' '}
        </span>
      ))}
      {texts.join(' · ')}
      {disabled ? <span className="tag revoked">disabled</span> : null}
    </>
  )
}

interface ActionProps {
  readonly tab: Tab
  readonly page: AccountPageReply | null
  readonly edit: () => void
}

function MainAction({ tab, page, edit }: ActionProps) {
  const { makesKeys, changesMembers } = useRights()
  const [dialog, open] = useDialog()
  if (page === null) return null
  if (tab === 'keys') {
    const to = `/keys?account=${page.account.name}&create=1`
    return makesKeys ? <CreateButton text="Create key" onClick={() => go(to)} /> : null
  }
  if (tab === 'members') {
    return changesMembers ? (
      <>
        <CreateButton text="Add member" onClick={() => open((onClose) => <AddMember onClose={onClose} />)} />
        {dialog}
      </>
    ) : null
  }
  if (!page.mayChangeLimits) return null
  const verb = Object.keys(page.limits).length === 0 ? 'Set budget' : 'Edit budget'
  return (
    <Button tone="primary" data-key="c" aria-keyshortcuts="c" onClick={edit}>
      {verb}
    </Button>
  )
}

function Tabs({ name, tab }: { readonly name: string; readonly tab: Tab }) {
  const { readsKeys } = useRights()
  const shown = TABS.filter(({ id }) => id !== 'keys' || readsKeys)
  return (
    <nav className="tabs row line" aria-label="Parts of the account">
      {shown.map((each) => (
        <Link
          key={each.id}
          to={`/accounts/${name}${each.id === 'summary' ? '' : `?tab=${each.id}`}`}
          className="tab"
          aria-current={each.id === tab ? 'page' : undefined}
        >
          {each.name}
        </Link>
      ))}
    </nav>
  )
}

interface ContentProps extends ActionProps {
  readonly page: AccountPageReply
}

function TabContent({ tab, page, edit }: ContentProps) {
  const { name } = page.account
  switch (tab) {
    case 'summary':
      return <Summary page={page} edit={edit} />
    case 'keys':
      return <KeysOf account={name} />
    case 'members':
      return <MemberList account={name} />
    case 'limits':
      return <LimitsTab page={page} edit={edit} />
    case 'activity':
      return <Activity name={name} />
    case 'settings':
      return <Settings page={page} />
    default:
      return tab satisfies never
  }
}

interface PageProps {
  readonly page: AccountPageReply
  readonly edit: () => void
}

function Summary({ page, edit }: PageProps) {
  const { account } = page
  const { name } = account
  const scoped = (path: string): string => `${path}?account=${name}`
  return (
    <>
      <Month page={page} edit={edit} />
      <Cards page={page} />
      <CostByGroup name={name} hasBelow={account.children > 0} />
      {account.children === 0 ? null : <AccountsBelow name={name} />}
      <Failures name={name} />
      <p className="row">
        <Link to={scoped('/usage')}>Usage</Link>
        <Link to={scoped('/requests')}>Requests</Link>
        <Link to={scoped('/statement')}>Statement</Link>
        <Link to={scoped('/audit')}>Audit log</Link>
      </p>
    </>
  )
}

/** The cost of the month against its budget, with the forecast. */
function Month({ page, edit }: PageProps) {
  const { account, fromMs, inherited, mayChangeLimits } = page
  const { name, costNanoUsd: spent, budgetNanoUsd: budget, forecastNanoUsd: forecast } = account
  const above = inherited.find(({ limits }) => limits.nanoUsdPerMonth !== undefined)
  return (
    <Block
      title={`Cost in ${monthName(fromMs)}`}
      note={forecast === null ? 'UTC' : `forecast ${dollars(forecast)} by the end of the month, UTC`}
    >
      <div className="month panel stack">
        {budget === null ? (
          <p>
            <b title={exactDollars(spent)}>{dollars(spent)}</b>, no budget of its own.{' '}
            {mayChangeLimits ? (
              <button type="button" className="link" onClick={edit}>
                Set budget
              </button>
            ) : null}
          </p>
        ) : (
          <BudgetBar name={name} spent={spent} budget={budget} />
        )}
        {above === undefined ? null : (
          <p className="note">
            Within the budget of <Link to={`/accounts/${above.name}`}>{above.name}</Link>:{' '}
            {dollars(above.limits.nanoUsdPerMonth ?? 0)} a month for all below it together.
          </p>
        )}
      </div>
    </Block>
  )
}

function Cards({ page: { account } }: { readonly page: AccountPageReply }) {
  const { requests, failed, liveKeys, members, costNanoUsd } = account
  const cards: readonly (readonly [name: string, text: string, exact: string])[] = [
    ['Cost this month', dollars(costNanoUsd), exactDollars(costNanoUsd)],
    ['Requests', count(requests), `${exactCount(requests)} requests`],
    [
      'Failed',
      requests === 0 ? '–' : percent(failed / requests),
      `${exactCount(failed)} of ${exactCount(requests)}`,
    ],
    ['Keys', count(liveKeys), `${exactCount(liveKeys)} keys that are not revoked`],
    ['Members', count(members), `${exactCount(members)} people`],
  ]
  return (
    <dl className="cards panel">
      {cards.map(([name, text, exact]) => (
        <div key={name} className="card">
          <dt className="note">{name}</dt>
          <dd title={exact}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Nothing without requests. */
function CostByGroup({ name, hasBelow }: { readonly name: string; readonly hasBelow: boolean }) {
  const [group, title] = hasBelow ? ['below', 'Cost by account'] : ['key', 'Cost by key']
  const asked = { account: name, tree: 'true', range: '30d', by: 'day', group }
  return (
    <Loaded resource={useResource('/usage', asked)} what={title} skeleton={null}>
      {(usage) => <CostChart title={title} usage={usage} />}
    </Loaded>
  )
}

function AccountsBelow({ name }: { readonly name: string }) {
  const resource = useResource('/account-tree', { parent: name })
  const [dialog, open] = useDialog()
  return (
    <Block title="Accounts below">
      <Loaded resource={resource} what="The accounts below">
        {({ rows }) => (
          <AccountTree
            caption={`Accounts below ${name}`}
            rows={rows}
            budget={(of) => open((onClose) => <AccountLimits name={of} onClose={onClose} />)}
            create={(parent) => open((onClose) => <CreateAccount parent={parent} onClose={onClose} />)}
          />
        )}
      </Loaded>
      {dialog}
    </Block>
  )
}

/** The failures of the account and of all below it; nothing without one. */
function Failures({ name }: { readonly name: string }) {
  const resource = useResource('/failures', { account: name, tree: 'true', range: '7d' })
  return (
    <Loaded resource={resource} what="The failures" skeleton={null}>
      {(data) =>
        data.groups.length === 0 ? null : (
          <Block
            title="Failures"
            note="of it and all below it, last 7 d"
            action={<Link to={`/requests?account=${name}&range=7d&group=failures`}>See all failures</Link>}
          >
            <FailureTable reply={data} most={FAILURES} address={{ account: name }} />
          </Block>
        )
      }
    </Loaded>
  )
}

function LimitsTab({ page, edit }: PageProps) {
  const { account, inherited, planLimits, mayChangeLimits } = page
  const levels = useLimits(account.name)?.filter(({ scope }) => scope !== 'key')
  const budgets = useResource('/budgets', { account: account.name, kind: 'account' }, { everyMs: EVERY_MS })
  const [dialog, open] = useDialog()
  const plan = limitTexts(planLimits)
  const budgetOf = ({ scope, kind }: LimitLevel) =>
    budgets.data?.rows.find(
      ({ ofId, source, period }) =>
        ofId === account.id && source === 'own' && scope === 'account' && kind === `usd_per_${period}`,
    )
  return (
    <>
      <Block
        title="Of the account"
        note={account.children === 0 ? 'over all its keys' : 'over it and all below it'}
        action={mayChangeLimits ? <Button onClick={edit}>Edit</Button> : undefined}
      >
        {levels === undefined || levels.length === 0 ? (
          <Empty title="No limits of its own">
            <p>Requests of this account are limited by the accounts above it and by the gateway only.</p>
          </Empty>
        ) : (
          <ul className="limits panel">
            {levels.map((limit) => {
              const row = budgetOf(limit)
              return (
                <li key={`${limit.scope} ${limit.kind}`}>
                  <LimitBar limit={limit} />
                  {row === undefined ? null : (
                    <p className="row spread">
                      <RaiseNote row={row} />
                      <RaiseButton row={row} open={open} />
                    </p>
                  )}
                </li>
              )
            })}
          </ul>
        )}
        {dialog}
      </Block>
      <Block title="Also hold for it">
        <Facts>
          <Fact name={`Plan ${account.plan}`}>{plan.length === 0 ? 'no limits' : plan.join(', ')}</Fact>
          {inherited.map(({ name, limits }) => (
            <Fact key={name} name={name}>
              <Link to={`/accounts/${name}?tab=limits`}>{limitTexts(limits).join(', ') || 'no limits'}</Link>
            </Fact>
          ))}
        </Facts>
      </Block>
      {mayChangeLimits || inherited.length > 0 ? null : (
        <p className="soft">The limits of an account at the top are set by an administrator.</p>
      )}
      <Block title="Changes">
        <Changes name={account.name} action="account." />
      </Block>
    </>
  )
}

function Activity({ name }: { readonly name: string }) {
  return (
    <Block title="What changed" action={<Link to={`/audit?account=${name}`}>Audit log</Link>}>
      <Changes name={name} />
    </Block>
  )
}

function Changes({ name, action }: { readonly name: string; readonly action?: string }) {
  const asked = { account: name, action: action ?? null, limit: CHANGES }
  const list = useList('/audit', asked, ({ entries }) => entries)
  return (
    <DataTable
      caption="Changes"
      columns={AUDIT_COLUMNS}
      list={list}
      unit="change"
      empty={<p className="soft">No changes yet.</p>}
      keyOf={({ id }) => id}
    />
  )
}

function Settings({ page: { account } }: { readonly page: AccountPageReply }) {
  const [dialog, open] = useDialog()
  const { isAdmin } = useRights()
  const { email } = account
  const above = account.above.at(-1)
  const row = (name: string, value: ReactNode, act: ReactNode) => (
    <Fact name={name}>
      <span className="row line">
        {value} {act}
      </span>
    </Fact>
  )
  const button = (verb: string, Shown: typeof EditAccount, tone: 'plain' | 'danger' = 'plain') =>
    isAdmin ? (
      <Button tone={tone} onClick={() => open((onClose) => <Shown account={account} onClose={onClose} />)}>
        {verb}
      </Button>
    ) : null
  return (
    <Block title="Settings" action={button('Edit settings', EditAccount)}>
      <Facts>
        <Fact name="Name">
          <code>{account.name}</code>
        </Fact>
        <Fact name="Display name">{account.displayName}</Fact>
        <Fact name="Account above">
          {above === undefined ? 'none, at the top' : <Link to={`/accounts/${above}`}>{above}</Link>}
        </Fact>
        <Fact name="Labels">{labelsText(account.labels) || 'none'}</Fact>
        <Fact name="Plan">{account.plan}</Fact>
        <Fact name="Id">
          <code>{account.id}</code>
        </Fact>
        <Fact name="Created">
          <Day ms={account.createdAtMs} />
        </Fact>
        {email === null ? null : row('Login', email, button('Password link', PasswordLink))}
        {row(
          'State',
          account.disabled ? 'disabled' : 'active',
          button(
            account.disabled ? 'Enable' : 'Disable',
            DisableAccount,
            account.disabled ? 'plain' : 'danger',
          ),
        )}
      </Facts>
      {dialog}
    </Block>
  )
}
