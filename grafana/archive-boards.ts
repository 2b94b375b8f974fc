/**
 * The boards of the archive, one for each engine: the queries of `docs/reference/archive.md` as tables, for
 * Grafana's data sources of ClickHouse and PostgreSQL.
 */
import { ARCHIVE_QUERIES } from '../docs/generate/archive-queries.js'

const SOURCES = {
  clickhouse: 'grafana-clickhouse-datasource',
  postgresql: 'grafana-postgresql-datasource',
} as const
const [WIDTH, HEIGHT] = [12, 9] as const

/** The files of the boards, with their texts. */
export function archiveBoardFiles(): { readonly path: string; readonly text: string }[] {
  return (['clickhouse', 'postgresql'] as const).map((engine) => ({
    path: `grafana/archive/${engine}.json`,
    text: `${JSON.stringify(boardOf(engine), null, 2)}\n`,
  }))
}

function boardOf(engine: keyof typeof SOURCES): object {
  const type = SOURCES[engine]
  const datasource = { type, uid: '${datasource}' }
  return {
    uid: `sluice-archive-${engine}`,
    title: `Sluice: archive in ${engine === 'clickhouse' ? 'ClickHouse' : 'PostgreSQL'}`,
    description: 'Cost, failures and waits over the time that the archive keeps.',
    tags: ['sluice'],
    schemaVersion: 39,
    editable: true,
    time: { from: 'now-13M', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: type }],
    },
    panels: ARCHIVE_QUERIES.map((query, at) => ({
      id: at + 1,
      type: 'table',
      title: query.question,
      datasource,
      gridPos: { x: (at % 2) * WIDTH, y: Math.floor(at / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
      targets: [
        {
          refId: 'A',
          datasource,
          rawSql: query[engine],
          ...(engine === 'clickhouse'
            ? { editorType: 'sql', queryType: 'table', format: 1 }
            : { editorMode: 'code', rawQuery: true, format: 'table' }),
        },
      ],
    })),
  }
}
