/** The one selection of forms and rows of filters. Its list is a file of its own, loaded after the page. */
import { Icon } from './button.js'
import { later } from './later.js'

/** The selection; until its list is loaded, its button with the value. */
export const Select = later(
  async () => (await import('./select-list.js')).SelectList,
  ({ className, value, options }) => (
    <button type="button" className={`${className} row line spread`} disabled>
      <span className="cut">{options.find((option) => option.value === value)?.label ?? value}</span>
      <Icon name="down" size={12} />
    </button>
  ),
)
