/** Tabs, and the content of the selected one. */
import { Tabs as Base } from '@base-ui/react/tabs'
import type { ReactNode } from 'react'

/** A tab and its content. */
interface Tab {
  readonly name: string
  readonly content: ReactNode
}

/** The tab list and the selected content. */
export function Tabs({ tabs, label }: { readonly tabs: readonly Tab[]; readonly label: string }) {
  return (
    <Base.Root defaultValue={tabs[0]?.name}>
      <Base.List className="tabs" aria-label={label}>
        {tabs.map(({ name }) => (
          <Base.Tab key={name} value={name} className="tab bare">
            {name}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(({ name, content }) => (
        <Base.Panel key={name} value={name} className="stack">
          {content}
        </Base.Panel>
      ))}
    </Base.Root>
  )
}
