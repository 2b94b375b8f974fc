/** The menu of the columns of a table. */
import { Menu as Base } from '@base-ui/react/menu'
import { Icon, IconButton } from './button.js'
import { CONTENT } from './content.js'

interface ColumnMenuProps {
  /** The name of the table. */
  readonly table: string
  readonly choices: readonly { readonly id: string; readonly head: string; readonly isOn: boolean }[]
  readonly choose: (id: string, isOn: boolean) => void
}

/** A button with a list of columns to tick. */
export function ColumnMenu({ table, choices, choose }: ColumnMenuProps) {
  return (
    <Base.Root>
      <Base.Trigger render={<IconButton icon="columns" label={`Columns of ${table}`} />} />
      <Base.Portal container={CONTENT}>
        <Base.Positioner className="menu-place" sideOffset={4} align="end">
          <Base.Popup className="menu">
            {choices.map(({ id, head, isOn }) => (
              <Base.CheckboxItem
                key={id}
                className="menu-item row line"
                checked={isOn}
                closeOnClick={false}
                onCheckedChange={(next) => choose(id, next)}
              >
                <span className="tick">{isOn ? <Icon name="check" size={14} /> : null}</span>
                {head}
              </Base.CheckboxItem>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
