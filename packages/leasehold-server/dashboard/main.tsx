import { render } from 'preact'
import { App } from './app.tsx'
import { Connection } from './live/connection.ts'
import { startTicking } from './live/frames.ts'
import { Live } from './parts/context.ts'
import { setTheme, themeNow } from './parts/theme.ts'
import './style/base.css'
import './style/parts.css'
import './style/views.css'

setTheme(themeNow())
const live = new Connection()
void live.run()
startTicking()
setInterval(() => live.visibleLeases.update(), 250)

const app = document.getElementById('app')!
app.textContent = ''
render(
  <Live.Provider value={live}>
    <App />
  </Live.Provider>,
  app,
)
