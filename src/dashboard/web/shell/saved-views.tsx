/** The views that the user has saved: the page with its filters and order, under a name. */
import { useState } from 'react'
import { useResource } from '../api/cache.js'
import { change } from '../api/endpoints.js'
import { IconButton } from '../components/button.js'
import { Dialog, FormFoot } from '../components/dialog.js'
import { TextField, useSubmit } from '../components/form.js'
import { report } from '../components/notices.js'
import { ProblemLine } from '../components/states.js'
import { Link, useLocation } from '../routing.js'

/** Saves the current page as a view, and lists the saved ones. */
export function SavedViews({ onClose }: { readonly onClose: () => void }) {
  const { path, query } = useLocation()
  const { data, problem } = useResource('/views')
  const [name, setName] = useState('')
  const views = data?.views ?? []
  const form = useSubmit(async () => {
    const known = views.find((view) => view.name === name.trim())
    await change(
      'PUT /views/{id}',
      { name: name.trim(), url: urlOf(path, query) },
      known?.id ?? newId(),
    )
    report(`Saved the view ${name.trim()}.`)
    onClose()
  })
  return (
    <Dialog
      title="Saved views"
      description="A view is this page with its filters and order, under a name. Only you see your views."
      onClose={onClose}
    >
      <form className="form" onSubmit={form.submit}>
        <TextField
          label="Name"
          hint={`Saves ${urlOf(path, query)}`}
          required
          autoFocus
          maxLength={80}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <ProblemLine problem={form.problem ?? problem} />
        {views.length === 0 ? null : (
          <ul className="views">
            {views.map((view) => (
              <li key={view.id}>
                <Link to={view.url} className="cut" title={view.url} onClick={onClose}>
                  {view.name}
                </Link>
                <IconButton
                  icon="close"
                  label={`Delete the view ${view.name}`}
                  onClick={() => void change('DELETE /views/{id}', undefined, view.id)}
                />
              </li>
            ))}
          </ul>
        )}
        <FormFoot verb="Save view" busy={form.busy} onCancel={onClose} />
      </form>
    </Dialog>
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
