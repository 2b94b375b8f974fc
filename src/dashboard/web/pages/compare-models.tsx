/** Models of upstreams side by side: those that are ticked in the table of the page Providers. */
import { useEffect, useRef } from 'react'
import type { ComparedUpstream, ProvidersReply } from '../../../control/dashboard/schema/schema.js'
import { changeText } from '../components/change.js'
import { Chart, coloursOf } from '../components/chart.js'
import { Button } from '../components/button.js'
import { DataTable, type Column } from '../components/data-table.js'
import { count, dollars, duration, percent } from '../format/number.js'
import { bucketsOf, perText, valuesOf } from '../format/time-buckets.js'
import { setQuery, useLocation } from '../routing.js'
import { Block } from '../shell/page.js'

/** A model at an upstream with its figures. */
export type ModelRow = ComparedUpstream['models'][number]

/** The parameter of the address, and of the query for the server: `MODEL UPSTREAM,MODEL UPSTREAM`. */
const NAME = 'compare'
/** There are as many colours. */
const MOST = 8
const MILLION = 1_000_000

/** The names of the ticked models, in the order of their ticks. */
export function useCompared(): readonly string[] {
  return (useLocation().query.get(NAME) ?? '').split(',').filter((id) => id !== '')
}

/** The name of a model at an upstream. */
export function idOfModel({ model, upstream }: Pick<ModelRow, 'model' | 'upstream'>): string {
  return `${model} ${upstream}`
}

function compare(ids: readonly string[]): void {
  setQuery({ [NAME]: ids.length === 0 ? null : ids.join(',') }, { replace: true })
}

/** The column of boxes that choose what is compared. */
export function tickColumn(chosen: readonly string[]): Column<ModelRow> {
  return {
    id: 'compare',
    head: 'Compare',
    cell: (row) => {
      const id = idOfModel(row)
      const isChosen = chosen.includes(id)
      return (
        <input
          type="checkbox"
          aria-label={`Compare ${row.model} at ${row.upstream}`}
          checked={isChosen}
          disabled={!isChosen && chosen.length >= MOST}
          onChange={() => compare(isChosen ? chosen.filter((each) => each !== id) : [...chosen, id])}
        />
      )
    },
  }
}

interface Line {
  readonly name: string
  readonly value: (row: ModelRow) => number | null
  readonly text: (value: number) => string
}

const LINES: readonly Line[] = [
  { name: 'Cost', value: ({ costNanoUsd }) => costNanoUsd, text: dollars },
  { name: 'Cost per request', value: ({ requestNanoUsd }) => requestNanoUsd, text: dollars },
  { name: 'Cost per million tokens', value: costOfMillion, text: dollars },
  { name: 'Requests', value: ({ requests }) => requests, text: count },
  { name: 'Failed at the provider', value: ({ failureShare }) => failureShare, text: percent },
  { name: 'First token p50', value: ({ firstTokenP50Ms }) => firstTokenP50Ms, text: duration },
  { name: 'First token p95', value: ({ firstTokenP95Ms }) => firstTokenP95Ms, text: duration },
  { name: 'Tokens in', value: ({ inputTokens }) => inputTokens, text: count },
  { name: 'Tokens out', value: ({ outputTokens }) => outputTokens, text: count },
]

function costOfMillion({ costNanoUsd, inputTokens, outputTokens }: ModelRow): number | null {
  const tokens = inputTokens + outputTokens
  return tokens === 0 ? null : Math.round((costNanoUsd / tokens) * MILLION)
}

/** The figures and charts of the ticked models; what to do while one alone is ticked. */
export function SideBySide({ data }: { readonly data: ProvidersReply }) {
  const chosen = useCompared()
  const all = data.upstreams.flatMap(({ models }) => models)
  const rows = chosen.flatMap((id) => all.find((row) => idOfModel(row) === id) ?? [])
  const top = useRef<HTMLDivElement>(null)
  const isShown = rows.length > 1
  // The boxes are further down the page.
  useEffect(() => {
    if (isShown) top.current?.scrollIntoView({ block: 'start' })
  }, [isShown])
  if (rows.length === 0) return null
  return (
    <div ref={top}>
      <Block
        title="Side by side"
        note={isShown ? undefined : 'Tick another model in the table by model.'}
        action={<Button onClick={() => compare([])}>End comparison</Button>}
      >
        {isShown ? (
          <>
            <DataTable
              caption="Models side by side"
              columns={columnsOf(rows)}
              rows={LINES}
              isPart
              keyOf={({ name }) => name}
            />
            <OverTime data={data} />
          </>
        ) : null}
      </Block>
    </div>
  )
}

function columnsOf(rows: readonly ModelRow[]): readonly Column<Line>[] {
  const [first, second] = rows
  const figures = rows.map((row): Column<Line> => {
    const cell = ({ value, text }: Line) => {
      const amount = value(row)
      return amount === null ? '–' : text(amount)
    }
    return { id: idOfModel(row), head: `${row.model}, ${row.upstream}`, cell, numeric: true }
  })
  const change: Column<Line> = {
    id: 'change',
    head: 'Second against first',
    cell: ({ value }) =>
      first === undefined || second === undefined ? null : changeText(value(second), value(first)),
    numeric: true,
    extra: true,
  }
  const name: Column<Line> = { id: 'name', head: 'Figure', cell: (line) => line.name, text: true }
  return [name, ...figures, ...(rows.length === 2 ? [change] : [])]
}

function OverTime({ data }: { readonly data: ProvidersReply }) {
  const { compared } = data
  const buckets = bucketsOf(data)
  const colourOf = coloursOf(compared.map(idOfModel))
  const series = (pick: (point: (typeof compared)[number]['points'][number]) => number | null) =>
    compared.map((each) => {
      const id = idOfModel(each)
      const values = valuesOf(buckets, each.points, pick)
      return { id, label: `${each.model}, ${each.upstream}`, colour: colourOf(id), values }
    })
  const both = { kind: 'lines', buckets, note: perText(buckets) } as const
  return (
    <div className="pair">
      <Chart
        {...both}
        title="First token p95 side by side"
        format={duration}
        series={series(({ firstTokenP95Ms }) => firstTokenP95Ms)}
      />
      <Chart
        {...both}
        title="Cost per request side by side"
        format={dollars}
        series={series(({ requestNanoUsd }) => requestNanoUsd)}
      />
    </div>
  )
}
