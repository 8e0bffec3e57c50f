{-# LANGUAGE LambdaCase #-}
module Orchard.Tree
  ( Tree(..)
  , harvest
  ) where

import Data.Map (Map, insertWith)
import qualified Data.Text as T
import Orchard.Fruit hiding (peel)

-- | A tree and what hangs on it.
data Tree a
  = Bare
  | Bearing { kind :: T.Text, fruits :: [a] }
  deriving (Eq, Show)

newtype Basket = Basket { weights :: Map T.Text Int }

type Picker a = Tree a -> [a]

class Eq a => Ripens a where
  ripe :: a -> Bool
  ripe _ = False

  days :: a -> Int

instance Ripens Apple where
  ripe apple = colour apple == Red
  days = const 120

-- | Takes what is ripe.
harvest :: Ripens a => Picker a
harvest Bare = []
harvest (Bearing _ hanging) = filter ripe hanging
  where
    spare = length hanging

limit, minimumDays :: Int
limit = 40
minimumDays = 7

(<+>) :: Basket -> Basket -> Basket
Basket a <+> Basket b = Basket (T.union a b)

fill :: Basket -> Tree Apple -> IO Basket
fill basket tree
  | null picked = pure basket
  | otherwise = do
      let heavy = map weigh picked
      mapM_ print heavy
      return $ foldr add basket heavy
  where
    picked = harvest tree

data Shape where
  Round :: Int -> Shape

type family Seed a where
  Seed Apple = Pip
