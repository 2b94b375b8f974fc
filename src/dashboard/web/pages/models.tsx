/** The catalogue with abilities, prices and routes, and the ids that the configuration adds. */
import { useState, type ReactNode } from 'react'
import type {
  Alias,
  Model,
  RouteTarget,
  ExplainReply,
  Price,
} from '../../../control/dashboard/schema/schema.js'
import { urlOf } from '../api/client.js'
import { useResource } from '../api/use-resource.js'
import { Button } from '../components/button.js'
import { CopyButton } from '../components/copy-button.js'
import { DrawerSection, Fact, Facts, Summary } from '../components/facts.js'
import { Dialog } from '../components/dialog.js'
import { Filter, Search } from '../components/form.js'
import { Switch } from '../components/switch.js'
import { RequestCode } from '../components/request-code.js'
import { Empty, Loaded, TableSkeleton } from '../components/loading-states.js'
import { DataTable, type Column } from '../components/data-table.js'
import { Absent } from '../components/values.js'
import { exactCount, percent, price as dollars } from '../format/number.js'
import { baseOf, KEY_PLACEHOLDER } from '../format/request-formats.js'
import { date } from '../format/time.js'
import { setQuery, useLocation, go } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { DeprecatedModels } from './deprecated-models.js'
import { useRights, useScope, useSession } from '../shell/session.js'

function size(tokens: number | null): string | null {
  if (tokens === null) return null
  if (tokens >= 1_000_000) return `${Number((tokens / 1_000_000).toFixed(2))} M`
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)} k` : String(tokens)
}

function Size({ tokens }: { readonly tokens: number | null }) {
  const text = size(tokens)
  return text === null ? <Absent /> : <span title={`${tokens} tokens`}>{text}</span>
}

/** The abilities by name; null is unknown. */
function abilitiesOf(model: Model): readonly (readonly [name: string, has: boolean | null])[] {
  return [
    ['tools', model.tools],
    ['images', model.vision],
    ['audio', model.audioInput],
    ['reasoning', model.reasoning],
    ['structured output', model.structuredOutput],
  ]
}

function sizes(
  id: string,
  head: string,
  pick: (model: Model) => number | null,
  more: Partial<Column<Model>>,
): Column<Model> {
  const cell = (model: Model) => <Size tokens={pick(model)} />
  return { id, head, cell, value: pick, numeric: true, ...more }
}

function prices(id: string, head: string, pick: (model: Model) => number | undefined): Column<Model> {
  const value = (model: Model): number | null => pick(model) ?? null
  const cell = (model: Model): ReactNode => {
    const amount = pick(model)
    return amount === undefined ? <Absent /> : dollars(amount)
  }
  return { id, head, cell, value, numeric: true }
}

const COLUMNS: readonly Column<Model>[] = [
  {
    id: 'id',
    head: 'Model',
    cell: ({ id, endsOn }) => (
      <>
        <span className="strong">{id}</span>
        {endsOn === null ? null : <span className="tag warn">ends {endsOn}</span>}
      </>
    ),
    value: ({ id }) => id,
    text: true,
  },
  {
    id: 'abilities',
    head: 'Supports',
    cell: (model) =>
      abilitiesOf(model)
        .flatMap(([name, has]) => (has === true ? [name] : []))
        .join(', '),
    className: 'soft small-cell',
    minor: true,
  },
  sizes('context', 'Context', ({ contextWindow }) => contextWindow, { extra: true }),
  sizes('output', 'Max. output', ({ maxOutputTokens }) => maxOutputTokens, { minor: true }),
  prices('in', '$ / M in', ({ price }) => price?.input),
  prices('out', '$ / M out', ({ price }) => price?.output),
  {
    id: 'route',
    head: 'Current route',
    cell: ({ route }) =>
      route === null ? (
        <span className="soft">no route</span>
      ) : route.configured ? (
        routeText(route.targets)
      ) : (
        <span className="status warn">{route.upstream}, no API key</span>
      ),
    value: ({ route }) => route?.upstream ?? '~',
    minor: true,
  },
]

/** `openai`, or `openai +2` if there are others. */
function routeText(targets: readonly RouteTarget[]): string {
  const names = [...new Set(targets.map(({ upstream }) => upstream))]
  return names.length > 1 ? `${names[0] ?? ''} +${names.length - 1}` : (names[0] ?? '')
}

const ALIAS_COLUMNS: readonly Column<Alias>[] = [
  {
    id: 'id',
    head: 'Model id',
    cell: ({ id, route }) => (
      <>
        <span className="strong">{id}</span>
        {route.conditions === '' ? null : <span className="tag">{route.conditions}</span>}
      </>
    ),
    value: ({ id }) => id,
    text: true,
  },
  {
    id: 'kind',
    head: 'Kind',
    cell: ({ route }) => (route.targets.length > 1 ? 'virtual model' : 'alias'),
    extra: true,
  },
  {
    id: 'targets',
    head: 'Resolves to',
    cell: ({ route }) => <TargetList targets={route.targets} isBrief />,
    className: 'wide-cell',
  },
]

export function ModelsPage() {
  const { query } = useLocation()
  const resource = useResource('/models')
  const { data } = resource
  const [family, search] = [query.get('family') ?? '', query.get('search') ?? '']
  const [families] = useState(() => new Set<string>())
  for (const model of data?.models ?? []) families.add(model.family)
  const shown = (data?.models ?? []).filter(
    (model) =>
      (family === '' || model.family === family) && model.id.toLowerCase().includes(search.toLowerCase()),
  )
  const aliases = (data?.aliases ?? []).filter(
    ({ id }) => family === '' && id.toLowerCase().includes(search.toLowerCase()),
  )
  const id = query.get('model')
  const isEnding = query.get('view') === 'ending'
  const ending = (data?.models ?? []).filter(({ endsOn }) => endsOn !== null).length
  return (
    <Page
      title="Models"
      purpose="The models of this gateway: abilities, limits, prices and routes."
      filters={
        <>
          <Switch
            label="Models"
            options={[
              { value: '', label: 'all' },
              { value: 'ending', label: `with an announced end${data === null ? '' : ` (${ending})`}` },
            ]}
            value={isEnding ? 'ending' : ''}
            onChange={(view) => setQuery(view === '' ? { view } : { view, family: null, search: null })}
          />
          {isEnding ? null : (
            <>
              <Search label="Search models" value={search} />
              <Filter
                label="Family"
                all="All families"
                value={family}
                options={[...families].map((value) => ({ value, label: value }))}
                onChange={(value) => setQuery({ family: value })}
              />
            </>
          )}
        </>
      }
    >
      {isEnding ? (
        <DeprecatedModels />
      ) : (
        <Loaded resource={resource} what="The catalogue" skeleton={<TableSkeleton rows={12} />}>
          {() =>
            shown.length === 0 && aliases.length === 0 ? (
              <NoModels search={search} />
            ) : (
              <Lists aliases={aliases} models={shown} />
            )
          }
        </Loaded>
      )}
      {id === null ? null : (
        <ModelDrawer
          id={id}
          model={data?.models.find((model) => model.id === id) ?? null}
          alias={data?.aliases.find((alias) => alias.id === id) ?? null}
          onClose={() => setQuery({ model: null })}
        />
      )}
    </Page>
  )
}

interface ListsProps {
  readonly aliases: readonly Alias[]
  readonly models: readonly Model[]
}

function Lists({ aliases, models }: ListsProps) {
  return (
    <>
      {aliases.length === 0 ? null : (
        <Block title="Aliases and virtual models" note="ids that the configuration adds">
          <DataTable
            caption="Aliases and virtual models"
            columns={ALIAS_COLUMNS}
            rows={aliases}
            keyOf={({ id }) => id}
            open={({ id }) => setQuery({ model: id })}
          />
        </Block>
      )}
      {models.length === 0 ? null : (
        <Block title="Catalogue" note="prices in dollars per million tokens">
          <DataTable
            caption="Models"
            columns={COLUMNS}
            rows={models}
            keyOf={(model) => model.id}
            open={(model) => setQuery({ model: model.id })}
            faded={({ route }) => route === null}
          />
        </Block>
      )}
    </>
  )
}

/** A model that is not in the catalogue may have a route, which its drawer shows. */
function NoModels({ search }: { readonly search: string }) {
  return (
    <Empty title="No models match this search">
      <p>A model id that is not in the catalogue can still have a route.</p>
      <p>
        <Button onClick={() => setQuery({ search: null, family: null })}>Clear search</Button>{' '}
        {search === '' ? null : (
          <Button onClick={() => setQuery({ model: search })}>Show the route of "{search}"</Button>
        )}
      </p>
    </Empty>
  )
}

interface DrawerProps {
  readonly id: string
  /** Null if the catalogue does not have the id; it may have a route. */
  readonly model: Model | null
  /** Null if the configuration does not add the id. */
  readonly alias: Alias | null
  readonly onClose: () => void
}

function ModelDrawer({ id, model, alias, onClose }: DrawerProps) {
  const { session } = useSession()
  const rights = useRights()
  const account = useScope() ?? (rights.readsGateway ? 'all' : null)
  const route = useResource('/models/explain', { model: id })
  return (
    <Dialog title={id} side onClose={onClose}>
      <Line model={model} route={model?.route ?? alias?.route ?? null} />
      <p className="row">
        <CopyButton text={id} what="model id" label />
        <Button icon="playground" onClick={() => go(`/playground?model=${encodeURIComponent(id)}`)}>
          Try it
        </Button>
        <Button
          icon="usage"
          onClick={() => go(urlOf('/usage', { account, model: id, group: 'key', range: '30d' }))}
        >
          Who uses it
        </Button>
      </p>
      <Loaded resource={route} what="The route">
        {(explained) => <RouteFacts explained={explained} />}
      </Loaded>
      {model === null ? null : <ModelFacts model={model} />}
      <RequestCode target={{ base: baseOf(session.publicUrl), model: id, key: KEY_PLACEHOLDER }} />
    </Dialog>
  )
}

interface LineProps extends Pick<DrawerProps, 'model'> {
  readonly route: Alias['route'] | null
}

/** `openai · 400 k tokens · $0.25 in · $2.00 out per million tokens`. */
function Line({ model, route }: LineProps) {
  const tone = route === null ? 'soft' : route.configured ? 'good' : 'warn'
  const context = size(model?.contextWindow ?? null)
  const price = model?.price ?? null
  return (
    <Summary>
      <span className={`status ${tone}`}>{route === null ? 'no route' : routeText(route.targets)}</span>
      {context === null ? null : <span>{context} tokens</span>}
      {price === null ? null : (
        <span>
          <Prices price={{ input: price.input, output: price.output }} />
        </span>
      )}
    </Summary>
  )
}

function RouteFacts({ explained }: { readonly explained: ExplainReply }) {
  const { route, why, dialectWhy, others, operations, notServed = [] } = explained
  return (
    <DrawerSection title="Current route">
      <p>{why}</p>
      {route === null ? null : (
        <Facts>
          <Fact name="Upstream">
            {route.upstream}
            {route.configured ? null : <span className="tag warn">no API key: replies 503</span>}
          </Fact>
          <Fact name="Model">
            <code>{route.model}</code>
          </Fact>
          <Fact name="Conditions">{route.conditions || null}</Fact>
          <Fact name="All targets">
            {route.targets.length > 1 ? <TargetList targets={route.targets} /> : null}
          </Fact>
          <Fact name="Format">
            {route.dialect}
            {route.dialectWithTools === route.dialect ? null : `, with tools ${route.dialectWithTools}`}
            {dialectWhy === null ? null : <span className="soft"> · {dialectWhy}</span>}
          </Fact>
          <Fact name="Endpoints">
            {operations.map(({ operation, form }) => `${operation} (form ${form})`).join(', ') || null}
          </Fact>
          <Fact name="Not served">
            {notServed.length === 0 ? null : (
              <details>
                <summary>{notServed.map(({ operation }) => operation).join(', ')}</summary>
                <ul className="stack gap-4">
                  {notServed.map(({ operation, reason }) => (
                    <li key={operation}>
                      <b>{operation}</b>: {reason}
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </Fact>
          <Fact name="Other routes">{others.join(', ') || null}</Fact>
        </Facts>
      )}
    </DrawerSection>
  )
}

interface TargetsProps {
  readonly targets: readonly RouteTarget[]
  /** Without the prices of caches and of long prompts. */
  readonly isBrief?: boolean
}

function TargetList({ targets, isBrief = false }: TargetsProps) {
  return (
    <ul className="stack gap-4">
      {targets.map(({ upstream, model, share, isFallback, configured, price }, at) => (
        <li key={at}>
          <b>{model}</b> <span className="soft">at {upstream}</span>
          <span className="tag">{isFallback ? 'fallback' : percent(share)}</span>
          {configured ? null : <span className="tag warn">no API key</span>}{' '}
          {price === null ? (
            <span className="tag">price unknown</span>
          ) : (
            <Prices price={isBrief ? { input: price.input, output: price.output } : price} />
          )}
        </li>
      ))}
    </ul>
  )
}

function ModelFacts({ model }: { readonly model: Model }) {
  const known = (value: number | null): string => (value === null ? 'Unknown' : `${exactCount(value)} tokens`)
  return (
    <DrawerSection title="Catalogue">
      <Facts>
        <Fact name="Family">{model.family}</Fact>
        <Fact name="Released">
          {model.releasedAtMs === null ? 'Unknown' : date(model.releasedAtMs, Date.now())}
        </Fact>
        <Fact name="Context">{known(model.contextWindow)}</Fact>
        <Fact name="Max. output">{known(model.maxOutputTokens)}</Fact>
        <Fact name="Abilities">
          {abilitiesOf(model).map(([name, has]) => (
            <span key={name} className={has === true ? 'tag good' : 'tag'}>
              {has === null ? `${name}: unknown` : has ? name : `no ${name}`}
            </span>
          ))}
        </Fact>
        <Fact name="Dated ids">{model.variants.join(', ') || null}</Fact>
        <Fact name="Price">{model.price === null ? 'Unknown' : <Prices price={model.price} />}</Fact>
      </Facts>
    </DrawerSection>
  )
}

function Prices({ price }: { readonly price: Price }) {
  const named = [
    ['in', price.input],
    ['out', price.output],
    ['cached in', price.cacheRead],
    ['written to cache', price.cacheWrite],
  ] as const
  const { longContext } = price
  return (
    <>
      {named
        .flatMap(([name, value]) => (value === undefined ? [] : [`${dollars(value)} ${name}`]))
        .join(' · ')}
      <span className="soft"> per million tokens</span>
      {longContext === undefined ? null : (
        <p className="soft">
          Prompts longer than {exactCount(longContext.aboveInputTokens)} tokens: {dollars(longContext.input)}{' '}
          in · {dollars(longContext.output)} out
        </p>
      )}
    </>
  )
}
