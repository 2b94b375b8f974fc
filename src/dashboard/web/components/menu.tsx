/** A menu of actions, opened by a button. */
import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement } from 'react'
import { CONTENT } from './content.js'

interface MenuItem {
  readonly label: string
  readonly danger?: boolean
  readonly choose: () => void
}

interface MenuProps {
  readonly trigger: ReactElement
  readonly items: readonly MenuItem[]
}

/** The menu with its button. */
export function Menu({ trigger, items }: MenuProps) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal container={CONTENT}>
        <Base.Positioner className="menu-place" sideOffset={4} align="end">
          <Base.Popup className="menu">
            {items.map((item) => (
              <Base.Item
                key={item.label}
                className={item.danger === true ? 'menu-item danger' : 'menu-item'}
                onClick={item.choose}
              >
                {item.label}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
