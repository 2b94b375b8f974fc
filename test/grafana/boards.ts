/** The generated boards and the alert rules, read from their files: panels, expressions, links. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import * as z from 'zod'

export const DASHBOARDS = join('grafana', 'dashboards')
export const ALERTS = join('grafana', 'alerts.yaml')

const Link = z.object({ title: z.string(), url: z.string() })

const Override = z.object({
  matcher: z.object({ id: z.string(), options: z.unknown() }),
  properties: z.array(z.object({ id: z.string(), value: z.unknown() })),
})

const Panel = z.object({
  id: z.number(),
  title: z.string(),
  type: z.string(),
  description: z.string().default(''),
  gridPos: z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
  links: z.array(Link).default([]),
  fieldConfig: z
    .object({
      defaults: z.object({
        unit: z.string().optional(),
        min: z.number().optional(),
        links: z.array(Link).default([]),
        thresholds: z
          .object({ steps: z.array(z.object({ value: z.number().nullable(), color: z.string() })) })
          .optional(),
      }),
      overrides: z.array(Override).default([]),
    })
    .optional(),
  options: z
    .object({
      legend: z.object({ displayMode: z.string(), calcs: z.array(z.string()).default([]) }).optional(),
      content: z.string().optional(),
    })
    .optional(),
  targets: z
    .array(
      z.object({
        expr: z.string(),
        legendFormat: z.string(),
        exemplar: z.boolean().default(false),
      }),
    )
    .default([]),
})

/** A collapsed row contains its panels; those of an open row follow it. */
const RowOrPanel = Panel.extend({
  collapsed: z.boolean().default(false),
  panels: z.array(Panel).default([]),
})

const Board = z.object({
  uid: z.string(),
  title: z.string(),
  panels: z.array(RowOrPanel),
  templating: z
    .object({
      list: z
        .array(z.object({ name: z.string(), query: z.unknown(), definition: z.string().optional() }))
        .default([]),
    })
    .optional(),
  annotations: z
    .object({ list: z.array(z.object({ name: z.string(), expr: z.string() })).default([]) })
    .optional(),
})

const Alerts = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          labels: z.object({ severity: z.enum(['page', 'ticket']) }),
          annotations: z.object({
            summary: z.string(),
            description: z.string(),
            runbook_url: z.string(),
          }),
        }),
      ),
    }),
  ),
})

/** A board of Grafana. `panels` has rows and all panels in order, also those of collapsed rows. */
export type BoardJson = z.infer<typeof Board>
/** A panel or a row. */
export type PanelJson = z.infer<typeof Panel>
/** An alert rule. */
export type Alert = z.infer<typeof Alerts>['groups'][number]['rules'][number]

/** All boards, by the order of their files. */
export function boards(): BoardJson[] {
  return readdirSync(DASHBOARDS).map((file) => {
    const board = Board.parse(JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8')))
    const panels = board.panels.flatMap((row) => [
      row,
      ...row.panels.map((panel) => ({ ...panel, collapsed: false, panels: [] })),
    ])
    return { ...board, panels }
  })
}

/** All rules. */
export function alerts(): Alert[] {
  return Alerts.parse(parse(readFileSync(ALERTS, 'utf8'))).groups.flatMap(({ rules }) => rules)
}

/** An expression and its location. */
export interface Expression {
  readonly where: string
  readonly text: string
  readonly legend: string
}

/** The expressions of all panels in the files. */
export function panelExpressions(): Expression[] {
  return boards().flatMap(({ title: board, panels }) =>
    panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, legendFormat }) => {
        return { where: `${board}: ${title}`, text: expr, legend: legendFormat }
      }),
    ),
  )
}

/** The expressions of all annotations. */
export function annotationExpressions(): Expression[] {
  return boards().flatMap(({ title, annotations }) =>
    (annotations?.list ?? []).map(({ name, expr }) => {
      return { where: `${title}: ${name}`, text: expr, legend: '' }
    }),
  )
}

/** The sides of an alert's comparisons; a healthy gateway has values for them too. */
export function operandsOf({ alert, expr }: Alert): Expression[] {
  return expr.split(/\n\s*(?:and|unless)\s*\n|\bor\b(?= absent)/).map((part) => {
    const text = part.trim().replace(/\s(?:>=|==|>|<)\s[\d.* ]+$/, '')
    return { where: alert, text, legend: '' }
  })
}

/** The expression as Grafana sends it with all values of every variable. */
export function interpolated(text: string, interval: string): string {
  return text
    .replaceAll('$__rate_interval', interval)
    .replaceAll('$__range', '5m')
    .replaceAll(/\$(instance|route|upstream|model)\b/g, '.*')
}
