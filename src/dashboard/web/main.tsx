/** The entry point of the page. */
import { CSPProvider } from '@base-ui/react/csp-provider'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { cache } from './api/client.js'
import { App } from './app.js'
import './styles/tokens.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/tables.css'
import './styles/overlays.css'
import './styles/shell.css'
import './styles/content.css'

const root = document.getElementById('page')
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={cache}>
          <App />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  )
}
