/**
 * The parts that all boards share: variables, annotations, links to each other and time range.
 */
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  TextBoxVariableBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { BOARDS, type BoardName } from './links.js'
import { capitalised, DATASOURCE } from './panels.js'
import { GATEWAY } from './promql.js'
import { addRows, type Row } from './rows.js'

interface Builder<T> {
  build(): T
}

/** A variable whose values are those of a label. `all` matches series that lack the label, too. */
function labelVariable(name: string, metric: string, label: string): QueryVariableBuilder {
  const definition = `label_values(${metric}, ${label})`
  return new QueryVariableBuilder(name)
    .label(capitalised(name))
    .datasource(DATASOURCE)
    .query({ query: definition, refId: `variable-${name}` })
    .definition(definition)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ selected: true, text: 'All', value: '$__all' })
}

function variables(): Builder<ReturnType<QueryVariableBuilder['build']>>[] {
  return [
    new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
    labelVariable('instance', 'sluice_config_generation', 'instance'),
    labelVariable('route', `sluice_requests_total{${GATEWAY}}`, 'route'),
    labelVariable('upstream', `sluice_breaker_state{${GATEWAY}}`, 'upstream'),
    labelVariable(
      'model',
      `gen_ai_server_request_duration_seconds_count{${GATEWAY}}`,
      'gen_ai_request_model',
    ),
    // The gateway's own dashboard, for what is in the ledger and in no metric.
    new TextBoxVariableBuilder('dashboard')
      .label('Sluice dashboard')
      .defaultValue('http://localhost:8080/dashboard'),
  ]
}

function annotation(name: string, colour: string, expr: string): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor(colour)
    .expr(expr)
    .step('60s')
    .titleFormat(name)
    .textFormat('{{instance}}')
}

function reloads(result: 'ok' | 'refused'): string {
  return `sum by (instance) (increase(sluice_config_reloads_total{${GATEWAY},result="${result}"}[1m])) > 0`
}

function annotations(): AnnotationQueryBuilder[] {
  const started = `max by (instance) (sluice_start_time_seconds{${GATEWAY}}) * 1000`
  return [
    annotation('Configuration reloaded', 'blue', reloads('ok')),
    annotation('Configuration refused', 'red', reloads('refused')),
    // The value is the time of the start in milliseconds: one mark for each.
    annotation('Process started', 'orange', started).useValueForTime(true),
  ]
}

/** A board: its uid and title come from its name. */
export function board(name: BoardName, description: string, rows: readonly Row[]): DashboardBuilder {
  const builder = new DashboardBuilder(`Sluice / ${name}`)
    .uid(BOARDS[name])
    .description(description)
    .tags(['sluice'])
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .variables(variables())
    .annotations(annotations())
    .link(
      new DashboardLinkBuilder('Sluice')
        .type(DashboardLinkType.Dashboards)
        .tags(['sluice'])
        .includeVars(true)
        .keepTime(true),
    )
  addRows(builder, rows)
  return builder
}
