/** Rows of panels: the first two of a board are open, the others are collapsed. */
import { RowBuilder, type DashboardBuilder, type Panel } from '@grafana/grafana-foundation-sdk/dashboard'

interface Builder<T> {
  build(): T
}

/** A row of panels under a title. */
export interface Row {
  readonly title: string
  readonly panels: readonly Builder<Panel>[]
}

/** The queries of a collapsed row run only when it is opened. */
const OPEN_ROWS = 2

/** Adds the rows to a board. Rows and panels get the ids 1, 2, 3, … in their order. */
export function addRows(board: DashboardBuilder, rows: readonly Row[]): void {
  let id = 0
  for (const [index, { title, panels }] of rows.entries()) {
    const row = new RowBuilder(title).id((id += 1))
    const built = panels.map((panel) => ({ ...panel.build(), id: (id += 1) }))
    const isOpen = index < OPEN_ROWS
    if (isOpen) board.withRow(row)
    for (const panel of built) (isOpen ? board : row).withPanel({ build: () => panel })
    if (!isOpen) board.withRow(row.collapsed(true))
  }
}
