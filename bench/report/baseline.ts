/**
 * The last figures: `bench/baseline.json` for programs, the table in `bench/README.md` for people. Only
 * ratios are compared, since absolute times depend on the machine.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { arrayOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { packageFile } from '../../src/config/package-file.js'
import { shown, type Figure, type SuiteResult } from './figures.js'
import type { Stamp } from '../processes/machine.js'

/** A suite's figures with where and when. */
export interface SuiteRecord extends Stamp, SuiteResult {
  readonly suite: string
}

/** A ratio of the baseline. */
interface Known {
  readonly name: string
  readonly median: number
}

const TOLERANCE = 0.15
const START = '<!-- figures: written by `npm run bench -- all --write` -->'
const END = '<!-- /figures -->'

/** The last records; empty if there is no file. */
export function readBaseline(): unknown {
  const path = packageFile('bench/baseline.json')
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as unknown) : []
}

/** Ratios that are worse than the baseline by more than the tolerance, or that the baseline lacks. */
export function breaches(records: readonly SuiteRecord[], baseline: unknown): string[] {
  const known = new Map(knownRatios(baseline).map(({ name, median }) => [name, median]))
  const found: string[] = []
  for (const { suite, figures } of records) {
    const checked = figures.filter(({ better }) => better !== undefined)
    if (checked.length === 0) found.push(`${suite} gave no ratio to check`)
    for (const { name, median, better } of checked) {
      const before = known.get(name)
      if (before === undefined) {
        found.push(`${name} is not in bench/baseline.json; run with --write first`)
        continue
      }
      const worse = better === 'higher' ? before / median - 1 : median / before - 1
      // Negated, so that NaN fails.
      if (!(worse <= TOLERANCE)) {
        const share = Number.isFinite(worse) ? `${Math.round(worse * 100)} %` : 'beyond measure'
        found.push(`${name} is ${shown(median)}, was ${shown(before)}: worse by ${share}`)
      }
    }
  }
  return found
}

function knownRatios(baseline: unknown): Known[] {
  return arrayOf(baseline).flatMap((record) =>
    arrayOf(objectOf(record).figures).flatMap((each) => {
      const { name, median } = objectOf(each)
      const [text, value] = [stringOf(name), numberOf(median)]
      return text === undefined || value === undefined ? [] : [{ name: text, median: value }]
    }),
  )
}

/** Replaces these suites in the baseline and the table, and keeps the others unchanged. */
export function writeBaseline(records: readonly SuiteRecord[]): void {
  const ran = new Set(records.map(({ suite }) => suite))
  const kept = arrayOf(readBaseline()).filter((record) => !ran.has(stringOf(objectOf(record).suite) ?? ''))
  const all = [...kept, ...(JSON.parse(JSON.stringify(records.map(rounded))) as unknown[])]
    .filter(isObject)
    .sort((a, b) => textIn(a, 'suite').localeCompare(textIn(b, 'suite')))
  writeFileSync(packageFile('bench/baseline.json'), `${JSON.stringify(all, null, 2)}\n`)
  for (const { chart } of records) {
    if (chart !== undefined) writeFileSync(packageFile(`bench/${chart.file}`), chart.svg)
  }
  const path = packageFile('bench/README.md')
  const text = readFileSync(path, 'utf8')
  const [start, end] = [text.indexOf(START), text.indexOf(END)]
  if (start < 0 || end < start) throw new Error(`${path} has no markers of its table`)
  const table = all.map(sectionOf).join('\n')
  writeFileSync(path, `${text.slice(0, start)}${START}\n\n${table}\n${text.slice(end)}`)
}

/**
 * The stored form of a record: four significant digits, since more would change with every run, the remarks
 * as lines of one text, and the name of a chart.
 */
function rounded(record: SuiteRecord): object {
  const cut = (value: number): number => Number(value.toPrecision(4))
  const figures = record.figures.map((each) => ({
    ...each,
    median: cut(each.median),
    low: cut(each.low),
    high: cut(each.high),
    ...(each.helpers !== undefined && { helpers: cut(each.helpers) }),
  }))
  return { ...record, figures, remarks: record.remarks.join('\n'), chart: record.chart?.file }
}

function sectionOf(record: JsonObject): string {
  const rows = arrayOf(record.figures).map((each) => cellsOf(objectOf(each)))
  const remarks = (stringOf(record.remarks) ?? '')
    .split('\n')
    .filter((remark) => remark !== '')
    .map((remark) => `- ${remark}\n`)
  const chart = stringOf(record.chart)
  return [
    `### ${textIn(record, 'suite')}\n`,
    `${textIn(record, 'date')} UTC, commit ${textIn(record, 'commit')}, Node ${textIn(record, 'node')}, ${textIn(record, 'machine')}, ` +
      `load average at the start ${numberOf(record.loadAverage) ?? '?'}.\n`,
    tableOf(['figure', 'median', 'lowest', 'highest', 'helpers', 'unit', 'goal'], rows),
    ...(chart === undefined ? [] : [`![${textIn(record, 'suite')}](${chart})\n`]),
    ...(remarks.length > 0 ? [remarks.join('')] : []),
  ].join('\n')
}

/** A text of a record, or `?` if it is missing. */
function textIn(record: JsonObject, name: keyof SuiteRecord): string {
  return stringOf(record[name]) ?? '?'
}

function cellsOf(each: JsonObject): string[] {
  const number = (name: keyof Figure): string => shown(numberOf(each[name]) ?? Number.NaN)
  const text = (name: keyof Figure): string => stringOf(each[name]) ?? ''
  const helpers = numberOf(each['helpers']) === undefined ? '' : number('helpers')
  return [text('name'), number('median'), number('low'), number('high'), helpers, text('unit'), text('goal')]
}

/** A Markdown table as Prettier formats it: padded, numbers to the right. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const isNumber = (column: number): boolean => column >= 1 && column <= 4
  const widths = head.map((title, column) =>
    Math.max(title.length, 4, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells
      .map((cell, column) =>
        isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join(' | ')} |\n`
  const rule = widths.map((width, column) =>
    isNumber(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  )
  return [head, rule, ...rows].map(lineOf).join('')
}
