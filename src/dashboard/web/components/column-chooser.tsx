/** Which columns of a table are shown: chosen at its head, and kept in the browser for each table. */
import { useMemo, useState } from 'react'
import { kept, keep } from './kept-text.js'
import { later } from './later.js'

/** What the chooser needs of a column. */
interface Choice {
  readonly id: string
  readonly head: string
  /** Hidden until it is chosen. */
  readonly isOptional?: boolean
}

// Menus are large, and the first load has none.
const ColumnMenu = later(async () => (await import('./column-menu.js')).ColumnMenu)

const PLACE = 'sluice.columns'
/** Tables with fewer columns have no chooser. */
const FEWEST = 5

/** The chosen columns by table: `{ "Keys": { "by": true } }`. */
type Chosen = Readonly<Record<string, Readonly<Record<string, boolean>>>>

function keptColumns(): Chosen {
  return JSON.parse(kept(PLACE) ?? '{}') as Chosen
}

/** The shown columns of a table, and its chooser; null for a table with few columns. */
export function useShownColumns<Column extends Choice>(table: string, columns: readonly Column[]) {
  const [chosen, setChosen] = useState(() => keptColumns()[table] ?? {})
  const choose = (id: string, isOn: boolean): void => {
    const next = { ...chosen, [id]: isOn }
    setChosen(next)
    keep(PLACE, JSON.stringify({ ...keptColumns(), [table]: next }))
  }
  const others = columns.slice(1)
  const shown = useMemo(
    () => columns.filter(({ id, isOptional = false }, at) => at === 0 || (chosen[id] ?? !isOptional)),
    [columns, chosen],
  )
  const chooser =
    columns.length < FEWEST ? null : (
      <ColumnMenu
        table={table}
        choices={others.map((one) => ({ ...one, isOn: shown.includes(one) }))}
        choose={choose}
      />
    )
  return { shown, chooser }
}
