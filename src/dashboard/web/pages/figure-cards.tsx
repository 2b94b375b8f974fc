/** The figures of a range with their change against the period before. */
import type { Figures, UsagePoint, UsageReply } from '../../../control/dashboard/schema/schema.js'
import { beforeTitle, Change } from '../components/change.js'
import { count, dollars, duration, exactCount, exactDollars, percent } from '../format/number.js'
import { barsOf, bucketsOf, sumsOf, valuesOf } from '../format/time-buckets.js'
import { Link } from '../routing.js'

/** The names of the figures, in their order. */
export const FIGURE_NAMES = ['cost', 'requests', 'tokens', 'failed', 'first-token'] as const
/** One of them. */
export type FigureName = (typeof FIGURE_NAMES)[number]

interface Figure {
  readonly title: string
  readonly text: (figures: Figures) => string
  readonly exact: (figures: Figures) => string
  /** What is compared with the period before. */
  readonly value: (figures: Figures) => number | null
  readonly pick: (point: UsagePoint) => number | null
  /** More is worse. */
  readonly isBad?: true
  /** A quantile, which cannot be summed. */
  readonly isQuantile?: true
}

const FIGURES: Readonly<Record<FigureName, Figure>> = {
  cost: {
    title: 'Cost',
    text: ({ costNanoUsd, unpricedRequests }) => dollars(costNanoUsd) + (unpricedRequests === 0 ? '' : '+'),
    exact: ({ costNanoUsd }) => exactDollars(costNanoUsd),
    value: ({ costNanoUsd }) => costNanoUsd,
    pick: ({ costNanoUsd }) => costNanoUsd,
  },
  requests: {
    title: 'Requests',
    text: ({ requests }) => count(requests),
    exact: ({ requests }) => `${exactCount(requests)} requests`,
    value: ({ requests }) => requests,
    pick: ({ requests }) => requests,
  },
  tokens: {
    title: 'Tokens',
    text: ({ inputTokens, outputTokens }) => count(inputTokens + outputTokens),
    exact: ({ inputTokens, outputTokens }) =>
      `${exactCount(inputTokens)} in, ${exactCount(outputTokens)} out`,
    value: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
    pick: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  },
  failed: {
    title: 'Failed',
    text: ({ failed, requests }) => percent(requests === 0 ? 0 : failed / requests),
    exact: ({ failed, requests }) => `${exactCount(failed)} of ${exactCount(requests)} requests`,
    value: ({ failed, requests }) => (requests === 0 ? null : failed / requests),
    pick: ({ failed }) => failed,
    isBad: true,
  },
  'first-token': {
    title: 'First token p95',
    text: ({ firstTokenP95Ms }) => (firstTokenP95Ms === null ? '–' : duration(firstTokenP95Ms)),
    exact: ({ firstTokenP50Ms, firstTokenP95Ms }) =>
      firstTokenP95Ms === null
        ? 'No request had content'
        : `p50 ${duration(firstTokenP50Ms ?? 0)}, p95 ${duration(firstTokenP95Ms)}`,
    value: ({ firstTokenP95Ms }) => firstTokenP95Ms,
    pick: ({ firstTokenP95Ms }) => firstTokenP95Ms,
    isBad: true,
    isQuantile: true,
  },
}

interface CardsProps {
  readonly usage: UsageReply
  /** Each figure leads to its page. */
  readonly linkOf?: (figure: FigureName) => string
  /** Or it chooses what the chart below shows. */
  readonly chosen?: FigureName
  readonly choose?: (figure: FigureName) => void
}

/** The figures, each with its change and its course. */
export function FigureCards({ usage, linkOf, chosen, choose }: CardsProps) {
  return (
    <ul className="cards panel" aria-label="Figures">
      {FIGURE_NAMES.map((name) => {
        const content = <CardContent figure={FIGURES[name]} usage={usage} />
        return (
          <li key={name}>
            {linkOf === undefined ? (
              <button
                type="button"
                className="card bare"
                aria-pressed={chosen === name}
                onClick={() => choose?.(name)}
              >
                {content}
              </button>
            ) : (
              <Link className="card" to={linkOf(name)}>
                {content}
              </Link>
            )}
          </li>
        )
      })}
    </ul>
  )
}

function CardContent({ figure, usage }: { readonly figure: Figure; readonly usage: UsageReply }) {
  const { title, text, exact, value, pick, isBad = false, isQuantile = false } = figure
  const { total, previous, points } = usage
  const values = isQuantile
    ? valuesOf(bucketsOf(usage), points, pick)
    : sumsOf(barsOf(usage), points, (point) => pick(point) ?? 0)
  return (
    <>
      <span className="card-head row line">
        <span className="note">{title}</span>
        <Change
          now={value(total)}
          before={previous === null ? null : value(previous.total)}
          isBad={isBad}
          title={
            previous === null ? 'The period before is not kept' : beforeTitle(exact(previous.total), previous)
          }
        />
      </span>
      <span className="figure" title={exact(total)}>
        {text(total)}
      </span>
      <Spark values={values} />
    </>
  )
}

const WIDTH = 120
const HEIGHT = 28

/** Starts at zero; gaps stay gaps. */
function Spark({ values }: { readonly values: readonly (number | null)[] }) {
  const top = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE)
  const step = WIDTH / Math.max(values.length - 1, 1)
  let path = ''
  let pen = false
  values.forEach((value, index) => {
    if (value === null) {
      pen = false
      return
    }
    const y = HEIGHT - 1 - (value / top) * (HEIGHT - 3)
    path += `${pen ? 'L' : 'M'}${(index * step).toFixed(1)} ${y.toFixed(1)}`
    pen = true
  })
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} vectorEffect="non-scaling-stroke" />
    </svg>
  )
}
