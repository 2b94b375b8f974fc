/** The one selection of forms and rows of filters. Its list is a file of its own, loaded after the page. */
import { lazy, Suspense } from 'react'
import { Icon } from './button.js'
import type { SelectProps } from './select-list.js'

const SelectList = lazy(() => import('./select-list.js').then((module) => ({ default: module.SelectList })))

/** The selection; until its list is loaded, its button with the value. */
export function Select(props: SelectProps) {
  const { className, value, options } = props
  return (
    <Suspense
      fallback={
        <button type="button" className={`${className} row line spread`} disabled>
          <span className="cut">{options.find((option) => option.value === value)?.label ?? value}</span>
          <Icon name="down" size={12} />
        </button>
      }
    >
      <SelectList {...props} />
    </Suspense>
  )
}
