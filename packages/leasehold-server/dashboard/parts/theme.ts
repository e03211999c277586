export type Theme = 'system' | 'light' | 'dark'

const NAME = 'leasehold-theme'
const ORDER: readonly Theme[] = ['system', 'light', 'dark']

export function themeNow(): Theme {
  try {
    const kept = localStorage.getItem(NAME)
    return ORDER.find((theme) => theme === kept) ?? 'system'
  } catch {
    return 'system'
  }
}

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length]!
}

/** Applies a theme, and stores it in this browser if possible. */
export function setTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme
  try {
    localStorage.setItem(NAME, theme)
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}
