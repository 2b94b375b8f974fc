/** Generates `docs/reference/archive.md` from the columns of the archive's tables. */
import { ENTRY_COLUMNS, SUM_COLUMNS } from '../../src/store/archive/columns.js'
import { ARCHIVE_QUERIES } from './archive-queries.js'

const INTRODUCTION = `
The tables that [the archive](../how-to/archive.md) fills in ClickHouse or PostgreSQL, for SQL, Grafana and Metabase. Columns are added at the end and are not renamed within a major version.
Comments in the database have the same texts. With another \`archive.prefix\` the names begin with it.

| name | what it has |
| --- | --- |
| \`sluice_requests\` | view: one row per request, its latest version, with \`cost_usd\` as a decimal. Use it for single requests |
| \`sluice_usage\` | view: sums of hours by account, key, model, upstream, format and labels, with \`cost_usd\`. Use it for totals: it is a hundred times smaller |
| \`sluice_entries\` | table: the entries. In ClickHouse read it with \`FINAL\`, because a repeated insert is removed later |
| \`sluice_hours\` | table: the cells of sums; \`seal\` is the transfer that wrote them |
| \`sluice_archive\` | table: \`schema\` (the version of the tables), \`store\`, \`confirmed\` and \`round\` (what counts), \`abandoned\` |

The views have what is confirmed. Sums arrive once an hour ended more than \`archive.hot_hours\` ago; entries arrive within seconds. Amounts of money are whole nano-dollars
(\`cost_nano_usd\`), exact at any sum. Times are in UTC. Unknown texts are \`''\` in ClickHouse and NULL in PostgreSQL; unknown numbers are NULL in both.
`

/** The whole page, ending in a newline. */
export function archivePage(): string {
  const table = (columns: typeof ENTRY_COLUMNS) => [
    '| column | ClickHouse | PostgreSQL | meaning |',
    '| --- | --- | --- | --- |',
    ...columns.map(({ name, clickhouse, postgresql, means }) => {
      const [own, other] = [clickhouse, postgresql].map((type) =>
        type.replace(/ (?:CODEC|DEFAULT|NOT NULL|COLLATE).*$/, ''),
      )
      return `| \`${name}\` | \`${own ?? ''}\` | \`${other ?? ''}\` | ${means} |`
    }),
  ]
  return [
    '<!-- Generated from src/store/archive/columns.ts by `npm run generate`; do not edit. -->',
    '',
    '# The tables of the archive',
    '',
    INTRODUCTION.trim(),
    '',
    '## `sluice_entries`',
    '',
    ...table(ENTRY_COLUMNS),
    '',
    '## `sluice_hours`',
    '',
    ...table(SUM_COLUMNS),
    '',
    '## Queries',
    '',
    'If the engines differ, both forms are given; tests run each of them.',
    '',
    ...ARCHIVE_QUERIES.flatMap(({ question, clickhouse, postgresql }) => [
      `### ${question}`,
      '',
      ...(clickhouse === postgresql
        ? ['```sql', clickhouse, '```', '']
        : [
            'ClickHouse:',
            '',
            '```sql',
            clickhouse,
            '```',
            '',
            'PostgreSQL:',
            '',
            '```sql',
            postgresql,
            '```',
            '',
          ]),
    ]),
  ].join('\n')
}
