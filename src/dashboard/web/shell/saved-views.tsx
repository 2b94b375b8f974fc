/** The views that the user has saved: the page with its filters and order, under a name. */
import { useResource } from '../api/use-resource.js'
import { change } from '../api/endpoints.js'
import { IconButton } from '../components/button.js'
import { FormDialog } from '../components/dialog.js'
import { TextField } from '../components/form.js'
import { report } from '../components/notices.js'
import { ProblemLine } from '../components/loading-states.js'
import { Link, useLocation } from '../routing.js'

/** Saves the current page as a view, and lists the saved ones. */
export function SavedViews({ onClose }: { readonly onClose: () => void }) {
  const { path, query } = useLocation()
  const { data, problem } = useResource('/views')
  const views = data?.views ?? []
  const url = urlOf(path, query)
  return (
    <FormDialog
      title="Saved views"
      description="A view is this page with its filters and order, under a name. Only you see your views."
      verb="Save view"
      initial={{ name: '' }}
      send={async (values) => {
        const name = values.name.trim()
        const known = views.find((view) => view.name === name)
        await change('PUT /views/{id}', { name, url }, known?.id ?? newId())
        report(`Saved the view ${name}.`)
      }}
      onClose={onClose}
    >
      {({ field }) => (
        <>
          <TextField
            label="Name"
            hint={`Saves ${url}`}
            required
            autoFocus
            maxLength={80}
            autoComplete="off"
            {...field('name')}
          />
          <ProblemLine problem={problem} />
          <ul className="stack gap-4">
            {views.map((view) => (
              <li key={view.id} className="row line spread">
                <Link to={view.url} className="cut" title={view.url} onClick={onClose}>
                  {view.name}
                </Link>
                <IconButton
                  icon="bin"
                  label={`Delete the view ${view.name}`}
                  onClick={() => void change('DELETE /views/{id}', undefined, view.id)}
                />
              </li>
            ))}
          </ul>
        </>
      )}
    </FormDialog>
  )
}

/** Without the page of a list and what is open on it. */
function urlOf(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams(query)
  for (const name of ['after', 'page', 'key', 'request', 'edit', 'create']) kept.delete(name)
  const text = kept.toString()
  return text === '' ? path : `${path}?${text}`
}

function newId(): string {
  return `view_${crypto.getRandomValues(new Uint32Array(2)).join('')}`
}
