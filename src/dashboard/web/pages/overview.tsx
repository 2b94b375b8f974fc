/** The overview: first steps, figures, limits and budgets, errors, cost by model, the latest requests. */
import { urlOf } from '../api/client.js'
import { useLive, useOnTraffic, useResource } from '../api/use-resource.js'
import { later } from '../components/later.js'
import { Limits, useLimits } from '../components/limits.js'
import { Loaded, Pulse, TableSkeleton } from '../components/loading-states.js'
import { RangePicker } from '../components/range-picker.js'
import { useRange } from '../components/time-range.js'
import { Link } from '../routing.js'
import { Block, Page } from '../shell/page.js'
import { useScope, useTree, withScope } from '../shell/session.js'
import { TreeChoice } from '../shell/tree-choice.js'
import { CostChart } from './cost-chart.js'
import { OpenedRequest, RequestTable } from './request-table.js'
import { ErrorsChart } from './errors-chart.js'
import { FigureCards, type FigureName } from './figure-cards.js'

const LATEST = 10

const FirstCall = later(async () => (await import('../components/request-code.js')).FirstCall)
const Checklist = later(async () => (await import('./checklist.js')).Checklist)

export function OverviewPage() {
  const scope = useScope()
  const range = useRange('24h')
  const { preset } = range
  const tree = useTree().isTree ? 'true' : null
  const usage = useResource('/usage', { account: scope, tree, ...range.query }, { everyMs: range.everyMs })
  const month = useResource('/usage', { account: scope, tree, range: '30d', by: 'day', group: 'model' })
  const limits = useLimits(scope)
  const live = useLive({ account: scope, tree })
  useOnTraffic(live, () => {
    usage.reload()
    month.reload()
  })
  return (
    <Page
      title="Overview"
      purpose={`Traffic, cost and failures, ${range.words}.`}
      filters={
        <>
          <RangePicker range={range} />
          <TreeChoice />
          <Pulse on={range.isLive} of={[usage, live]} />
        </>
      }
    >
      <Checklist />
      <Loaded resource={usage} what="The figures">
        {(data) => <FigureCards usage={data} linkOf={(figure) => figureLink(figure, scope, preset)} />}
      </Loaded>
      <Limits limits={limits} />
      {usage.data === null || usage.data.total.failed === 0 ? null : (
        <ErrorsChart usage={usage.data} words={range.words} />
      )}
      <Loaded resource={month} what="Cost by model">
        {(data) => <CostChart title="Cost by model" usage={data} />}
      </Loaded>
      <Block
        title="Latest requests"
        action={<Link to={withScope('/requests', scope)}>See all requests</Link>}
      >
        <Loaded
          resource={live}
          what="The latest requests"
          unaffected="Requests are still served and recorded."
          skeleton={<TableSkeleton rows={LATEST} />}
        >
          {({ rows }) =>
            rows.length === 0 ? (
              <FirstCall what="Each request with its model, tokens, cost and timing." />
            ) : (
              <RequestTable rows={rows.slice(0, LATEST)} />
            )
          }
        </Loaded>
      </Block>
      <OpenedRequest />
    </Page>
  )
}

/** The figure on the page Usage, in the same range. */
function figureLink(figure: FigureName, scope: string | null, preset: string): string {
  const range = preset === 'custom' ? {} : { range: preset }
  return urlOf('/usage', { account: scope === 'all' ? null : scope, ...range, figure })
}
