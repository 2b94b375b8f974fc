/** The catalogue: what each model can do, what it costs, and where its id leads now. */
import { useState } from 'react'
import type { Model } from '../../../server/schema/schema.js'
import { useResource } from '../../api/resource.js'
import { price } from '../../format/number.js'
import { Absent } from '../../parts/tables/figure.js'
import { Filter } from '../../parts/forms/field.js'
import { Search } from '../../parts/forms/search.js'
import { Empty, Failed, TableSkeleton } from '../../parts/states/states.js'
import { Table, type Column } from '../../parts/tables/table.js'
import { setQuery, usePlace } from '../../routing/place.js'
import { Page } from '../../shell/page.js'
import { ModelDrawer } from './model-drawer.js'

function size(tokens: number | null): string | null {
  if (tokens === null) return null
  if (tokens >= 1_000_000) return `${Number((tokens / 1_000_000).toFixed(2))} M`
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)} k` : String(tokens)
}

function Size({ tokens }: { readonly tokens: number | null }) {
  const text = size(tokens)
  return text === null ? <Absent /> : <span title={`${tokens} tokens`}>{text}</span>
}

function Usd({ value }: { readonly value: number | undefined }) {
  if (value === undefined) return <Absent />
  return <>{price(value)}</>
}

function abilities(model: Model): string[] {
  const { tools, vision, audioInput, reasoning, structuredOutput } = model
  return [
    tools === true ? 'tools' : '',
    vision === true ? 'images' : '',
    audioInput === true ? 'audio' : '',
    reasoning === true ? 'reasoning' : '',
    structuredOutput === true ? 'schemas' : '',
  ].filter((name) => name !== '')
}

const COLUMNS: readonly Column<Model>[] = [
  {
    id: 'id',
    head: 'Model',
    cell: ({ id, endsOn }) => (
      <>
        <span className="cell-name">{id}</span>
        {endsOn === null ? null : <span className="tag warn">ends {endsOn}</span>}
      </>
    ),
    sort: ({ id }) => id,
    className: 'main-cell',
  },
  {
    id: 'abilities',
    head: 'Can',
    cell: (model) => abilities(model).join(', '),
    className: 'soft small-cell',
    minor: true,
  },
  {
    id: 'context',
    head: 'Context',
    cell: ({ contextWindow }) => <Size tokens={contextWindow} />,
    sort: ({ contextWindow }) => contextWindow ?? 0,
    numeric: true,
    extra: true,
  },
  {
    id: 'output',
    head: 'Max. output',
    cell: ({ maxOutputTokens }) => <Size tokens={maxOutputTokens} />,
    sort: ({ maxOutputTokens }) => maxOutputTokens ?? 0,
    numeric: true,
    minor: true,
  },
  {
    id: 'in',
    head: '$ / M in',
    cell: (model) => <Usd value={model.price?.input} />,
    sort: (model) => model.price?.input ?? 0,
    numeric: true,
  },
  {
    id: 'out',
    head: '$ / M out',
    cell: (model) => <Usd value={model.price?.output} />,
    sort: (model) => model.price?.output ?? 0,
    numeric: true,
  },
  {
    id: 'route',
    head: 'Goes to',
    cell: ({ route }) =>
      route === null ? (
        <span className="soft">no route</span>
      ) : route.configured ? (
        route.upstream
      ) : (
        <span className="status warn">{route.upstream}, no key</span>
      ),
    sort: ({ route }) => route?.upstream ?? '~',
    minor: true,
  },
]

/** The page of models. */
export function ModelsPage() {
  const { query } = usePlace()
  const { data, problem, reload } = useResource('/models')
  const [family, search] = [query.get('family') ?? '', query.get('search') ?? '']
  const [families] = useState(() => new Set<string>())
  for (const model of data?.models ?? []) families.add(model.family)
  const shown = (data?.models ?? []).filter(
    (model) =>
      (family === '' || model.family === family) &&
      model.id.toLowerCase().includes(search.toLowerCase()),
  )
  const id = query.get('model')
  return (
    <Page
      title="Models"
      purpose="What this gateway serves: abilities, limits, prices, and where each id leads now."
      filters={
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
      }
    >
      {problem !== null && data === null ? (
        <Failed what="The catalogue" problem={problem} retry={() => reload()} />
      ) : data === null ? (
        <TableSkeleton rows={12} />
      ) : shown.length === 0 ? (
        <Empty title="No model has this name">
          <p>An id that is not in the catalogue may still have a route: open it by its address.</p>
        </Empty>
      ) : (
        <Table
          caption="Models"
          columns={COLUMNS}
          rows={shown}
          keyOf={(model) => model.id}
          open={(model) => setQuery({ model: model.id })}
          faded={({ route }) => route === null}
        />
      )}
      {id === null ? null : (
        <ModelDrawer
          id={id}
          model={data?.models.find((model) => model.id === id) ?? null}
          onClose={() => setQuery({ model: null })}
        />
      )}
    </Page>
  )
}
