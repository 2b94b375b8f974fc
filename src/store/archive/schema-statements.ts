/**
 * The statements that make the tables of an archive, for an administrator of the database, and those that
 * give the gateway's user its rights. Both can be repeated.
 */
import { readFileSync } from 'node:fs'
import type { ArchiveConfig } from '../../config/config.js'
import { FIRST_CONTENT_COUNTERS } from '../first-content.js'
import { programFile } from '../../config/package-file.js'
import type { ArchiveAddress } from './archive-address.js'
import {
  ARCHIVE_MEANS,
  DIMENSIONS,
  ENTRY_COLUMNS,
  FIGURES,
  LATER_COLUMNS,
  SUM_COLUMNS,
  TABLE_MEANS,
  VIEW_COLUMNS,
} from './columns.js'

/** The version of the tables. A newer one only adds columns. */
export const SCHEMA = 1

interface SchemaOptions {
  readonly engine: ArchiveAddress['engine']
  readonly config: Pick<ArchiveConfig, 'prefix' | 'keepDays' | 'sumsDays'>
  /** ClickHouse: the table engine of entries instead of `ReplacingMergeTree(version)`. */
  readonly tableEngine?: string
  /** ClickHouse: the name of a cluster. */
  readonly cluster?: string
}

/** The statements without their final semicolons. */
export function schemaStatements(options: SchemaOptions): string[] {
  return options.engine === 'clickhouse' ? clickhouseSchema(options) : postgresSchema(options)
}

function clickhouseSchema({ config, tableEngine, cluster }: SchemaOptions): string[] {
  const entries = tableEngine ?? 'ReplacingMergeTree(version)'
  // Cells are never replaced by a later version.
  const hours = entries.replace(/,\s*version\s*\)$|\(\s*version\s*\)$/, (end) =>
    end.startsWith(',') ? ')' : '',
  )
  const columns = (list: typeof ENTRY_COLUMNS) =>
    list.map(({ name, clickhouse, means }) => `  \`${name}\` ${withComment(clickhouse, means)}`).join(',\n')
  const values = {
    ...valuesOf(config),
    local: cluster === undefined ? '' : '_local',
    on_cluster: cluster === undefined ? '' : ` ON CLUSTER ${cluster}`,
    cluster: cluster ?? '',
    entries_engine: entries,
    hours_engine: hours,
    archive_engine: tableEngine ?? 'ReplacingMergeTree(version)',
    entry_columns: columns(ENTRY_COLUMNS),
    sum_columns: columns(SUM_COLUMNS),
    // A bare name would be that of the sum.
    figure_sums: figureSums(FIRST_FIGURES, 'cells.'),
    later_sums: figureSums(LATER_FIGURES, 'cells.'),
    later_figures: laterColumns(SUM_COLUMNS),
    later_entry_columns: laterColumns(ENTRY_COLUMNS),
    ...Object.fromEntries(
      Object.entries({ ...TABLE_MEANS, ...ARCHIVE_MEANS }).map(([name, means]) => [
        `means_of_${name}`,
        quoted(means),
      ]),
    ),
    usage_comments: columnComments('usage'),
    requests_comments: columnComments('requests'),
  }
  const tables = statementsOf('store/archive/clickhouse/schema.sql', values)
  if (cluster === undefined) return [...tables, ...setsSchema(config.prefix)]
  const views = tables.splice(5)
  const distributed = statementsOf('store/archive/clickhouse/distributed.sql', values)
  return [...tables, ...distributed, ...views, ...setsSchema(config.prefix)]
}

/** Columns that tables of an earlier release get. */
function laterColumns(list: typeof ENTRY_COLUMNS): string {
  const later = list.filter(({ name }) => LATER_COLUMNS.includes(name))
  const added = later.map(({ name, clickhouse, means }) => `${name} ${withComment(clickhouse, means)}`)
  return added.map((each) => `ADD COLUMN IF NOT EXISTS ${each}`).join(', ')
}

/** Comments of the columns that ClickHouse's view has. */
function columnComments(view: keyof typeof VIEW_COLUMNS): string {
  const columns = VIEW_COLUMNS[view].filter(({ name }) => view === 'requests' || name !== 'seal')
  return columns.map(({ name, means }) => `COMMENT COLUMN \`${name}\` ${quoted(means)}`).join(', ')
}

/** The comment follows the default and precedes the codec. */
function withComment(type: string, means: string): string {
  if (means === '') return type
  const comment = `COMMENT ${quoted(means)}`
  const codec = type.indexOf(' CODEC')
  return codec < 0 ? `${type} ${comment}` : `${type.slice(0, codec)} ${comment}${type.slice(codec)}`
}

function setsSchema(prefix: string): string[] {
  return [`INSERT INTO ${prefix}archive (name, value, version) VALUES ('schema', '${SCHEMA}', ${SCHEMA})`]
}

function postgresSchema({ config }: SchemaOptions): string[] {
  const columns = (list: typeof ENTRY_COLUMNS) =>
    list.map(({ name, postgresql }) => `  ${nameOf(name)} ${postgresql}`).join(',\n')
  const comment = (of: string, means: string) => `COMMENT ON ${of} IS ${quoted(means)}`
  const onColumns = (
    table: string,
    list: readonly Pick<(typeof ENTRY_COLUMNS)[number], 'name' | 'means'>[],
  ) => list.map(({ name, means }) => comment(`COLUMN ${config.prefix}${table}.${nameOf(name)}`, means))
  // The view has no transfers.
  const ofUsage = VIEW_COLUMNS.usage.filter(({ name }) => name !== 'seal')
  const values = {
    ...valuesOf(config),
    entry_columns: columns(ENTRY_COLUMNS),
    sum_columns: columns(SUM_COLUMNS),
    // A view that is replaced keeps the place of each column.
    first_columns: columnNames((name) => !LATER_COLUMNS.includes(name)),
    later_columns: columnNames((name) => LATER_COLUMNS.includes(name)),
    // The sum of bigint is numeric.
    figure_sums: figureSums(FIRST_FIGURES),
    later_sums: figureSums(LATER_FIGURES),
    // Lists may be shorter: sums of earlier versions have fewer bounds.
    first_content_sums: `ARRAY[${Array.from({ length: FIRST_CONTENT_COUNTERS.length }, (_, at) => `coalesce(sum(first_content[${at + 1}]), 0)`).join(', ')}]::bigint[]`,
    later_figures: LATER_FIGURES.map(
      (name) => `ADD COLUMN IF NOT EXISTS ${name} bigint NOT NULL DEFAULT 0`,
    ).join(', '),
  }
  return [
    ...statementsOf('store/archive/postgres/schema.sql', values),
    ...Object.entries(TABLE_MEANS).map(([name, means]) => {
      return comment(`${name in VIEW_COLUMNS ? 'VIEW' : 'TABLE'} ${config.prefix}${name}`, means)
    }),
    ...onColumns('entries', ENTRY_COLUMNS),
    ...onColumns('hours', [
      ...SUM_COLUMNS,
      { name: 'dims', means: 'A digest of the dimensions, for the key.' },
    ]),
    ...onColumns(
      'archive',
      Object.entries(ARCHIVE_MEANS).map(([name, means]) => ({ name, means })),
    ),
    ...onColumns('requests', VIEW_COLUMNS.requests),
    ...onColumns('usage', ofUsage),
    ...setsSchema(config.prefix).map(
      (sql) => `${sql} ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = excluded.version`,
    ),
  ]
}

const FIRST_FIGURES = FIGURES.filter((name) => !LATER_COLUMNS.includes(name))
const LATER_FIGURES = FIGURES.filter((name) => LATER_COLUMNS.includes(name))

function figureSums(names: readonly string[], of = ''): string {
  return names.map((name) => `sum(${of}${name}) AS ${name}`).join(', ')
}

function columnNames(isChosen: (name: string) => boolean): string {
  const names = ENTRY_COLUMNS.map(({ name }) => name).filter(isChosen)
  return names.map(nameOf).join(', ')
}

/** `limit` is a word of SQL. */
function nameOf(name: string): string {
  return name === 'limit' || name === 'user' ? `"${name}"` : name
}

function valuesOf({ prefix, keepDays, sumsDays }: SchemaOptions['config']): Record<string, string> {
  return {
    prefix,
    keep_days: String(keepDays),
    sums_days: String(sumsDays),
    dimensions: DIMENSIONS.join(', '),
  }
}

function statementsOf(file: string, values: Readonly<Record<string, string>>): string[] {
  const text = readFileSync(programFile(file), 'utf8').replace(/^--.*\n/gm, '')
  const filled = text.replace(/\{([a-z_]+)\}/g, (whole, name: string) => values[name] ?? whole)
  return filled.split(/\n\n+/).flatMap((statement) => statement.trim() || [])
}

/** A text as a literal of both engines. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

/** The statements that let a user of the database be the gateway's, with no right to alter a table. */
export function grantStatements(
  { engine, config: { prefix } }: SchemaOptions,
  { user, database }: { readonly user: string; readonly database: string },
): string[] {
  const tables = ['entries', 'hours', 'archive'].map((name) => `${prefix}${name}`)
  if (engine === 'clickhouse') {
    return [
      ...tables.map((table) => `GRANT SELECT, INSERT ON ${database}.${table} TO ${user}`),
      ...tables.map((table) => `GRANT ALTER DELETE ON ${database}.${table} TO ${user} -- optional: erase`),
    ]
  }
  return [
    `GRANT SELECT, INSERT, UPDATE ON ${tables.join(', ')} TO ${user}`,
    `GRANT SELECT ON ${prefix}usage, ${prefix}requests TO ${user}`,
    `GRANT EXECUTE ON FUNCTION ${prefix}partitions(int) TO ${user}`,
    `GRANT DELETE ON ${prefix}entries, ${prefix}hours TO ${user} -- optional: erase`,
  ]
}
